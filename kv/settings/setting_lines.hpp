// Settings whose words make one line of a certain form: each function checks the words and gives the line as
// CONFIG GET shows it, or says what is wrong with them. Stateless.
#pragma once

#include <expected>
#include <span>
#include <string>

namespace weir::kv {

using SettingLine = std::expected<std::string, std::string>;

std::string joined_words(std::span<const std::string> words);

SettingLine event_classes_line(std::span<const std::string> words);  // notify-keyspace-events
SettingLine file_name(std::span<const std::string> words);           // no path
SettingLine cpu_line(std::span<const std::string> words);            // CPUs, or empty
SettingLine primary_line(std::span<const std::string> words);  // HOST PORT; "no one" gives an empty line
SettingLine node_line(std::span<const std::string> words);     // HOST:PORT, or empty

}  // namespace weir::kv
