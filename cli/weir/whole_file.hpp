// Files that are either there and whole or not there.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

namespace weir::command {

// Writes beside `path` and renames over it; directories are made. What is no file, /dev/stdout say, is
// written to. Empty, or what went wrong and where.
std::string write_whole_file(const std::filesystem::path& path, std::string_view text);

// Makes it, where it is not there, and sees whether files can be written into it: for who works long before
// they are. Empty, or what went wrong.
std::string make_directory(const std::filesystem::path& path);

// All of a file, or of what a pipe gives until its end. The error says why and names it.
std::expected<std::string, std::string> read_whole_file(const std::string& path);
std::expected<std::string, std::string> read_standard_input();

}  // namespace weir::command
