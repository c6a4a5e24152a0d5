// Writes files so that each is either whole or absent, and reads whole files.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

namespace weir::command {

// Writes a file beside `path` and renames it to `path`; makes missing directories. Writes directly to what is
// not a regular file, such as /dev/stdout. Returns the error with its place, or nothing.
std::string write_whole_file(const std::filesystem::path& path, std::string_view text);

// Makes the directory if it is missing, and checks that files can be created in it, for a command that works
// long before it writes them. Returns the error, or nothing.
std::string make_directory(const std::filesystem::path& path);

// Reads a file whole, or a pipe to its end. The error gives the cause and the name.
std::expected<std::string, std::string> read_whole_file(const std::string& path);
std::expected<std::string, std::string> read_standard_input();

}  // namespace weir::command
