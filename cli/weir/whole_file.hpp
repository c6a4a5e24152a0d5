// Files that are either there and whole or not there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace weir::command {

// Writes beside `path` and renames over it; directories are made. Empty, or what went wrong and where.
std::string write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace weir::command
