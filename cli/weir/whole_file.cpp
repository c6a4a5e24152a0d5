#include "cli/weir/whole_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace weir::command {
namespace {

// Not a std::ifstream: reading a directory with one throws.
std::expected<std::string, std::string> read_to_end(std::FILE* file, const std::string& name) {
  std::string text;
  char block[65536];
  for (std::size_t got; file != nullptr && (got = std::fread(block, 1, sizeof block, file)) != 0;)
    text.append(block, got);
  if (file == nullptr || std::ferror(file) != 0)
    return std::unexpected(fmt::format("cannot read {}: {}", name, std::strerror(errno)));
  return text;
}

}  // namespace

std::string make_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fmt::format("cannot make the directory {}: {}", path.string(), error.message());
  if (::access(path.c_str(), W_OK) == 0) return {};
  return fmt::format("cannot write into {}: {}", path.string(), std::strerror(errno));
}

std::expected<std::string, std::string> read_whole_file(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  auto text = read_to_end(file, "'" + path + "'");
  if (file != nullptr) std::fclose(file);
  return text;
}

std::expected<std::string, std::string> read_standard_input() { return read_to_end(stdin, "standard input"); }

std::string write_whole_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error)
    return fmt::format("cannot make the directory {}: {}", path.parent_path().string(), error.message());
  // A device, a pipe or a terminal is written to and not replaced.
  const auto there = std::filesystem::status(path, error);
  const bool replaced = !std::filesystem::exists(there) || std::filesystem::is_regular_file(there) ||
                        std::filesystem::is_directory(there);
  auto partial = path;
  if (replaced) partial += fmt::format(".{}.part", ::getpid());
  std::FILE* file = std::fopen(partial.c_str(), "wb");
  bool written = file != nullptr;
  if (file) {
    written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const int reason = errno;
    if (std::fclose(file) != 0)
      written = false;
    else if (!written)
      errno = reason;
  }
  if (!written || (replaced && std::rename(partial.c_str(), path.c_str()) != 0)) {
    const int reason = errno;
    if (replaced) std::remove(partial.c_str());
    return fmt::format("cannot write {}: {}", path.string(), std::strerror(reason));
  }
  return {};
}

}  // namespace weir::command
