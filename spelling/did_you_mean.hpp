// Guesses what a user who mistyped a command, an option or a key probably meant. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir {

// The candidate nearest to the word. Empty if no candidate is near, or if the word itself is a candidate.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean 'plan'?", or an empty string if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

// The same for an option; the candidates are the options that the help text names. Ignores what follows an
// equals sign.
std::string did_you_mean_option(std::string_view word, std::string_view help);

// What is wrong with an option that a reader of command lines did not take: the help does not name it
// ("unknown option
// --jsn; did you mean '--json'?"), or it names it, so that a value is missing or too much.
std::string option_complaint(std::string_view word, std::string_view help);

}  // namespace weir
