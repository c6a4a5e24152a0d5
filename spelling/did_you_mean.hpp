// What somebody who mistyped a command, an option or a key probably meant. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir {

// The candidate that is near, if one is; nothing where none is, or where it is the word itself.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean 'plan'?", or nothing where no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

// The same for an option, with those that the help text names as candidates. What follows a = is not looked
// at.
std::string did_you_mean_option(std::string_view word, std::string_view help);

}  // namespace weir
