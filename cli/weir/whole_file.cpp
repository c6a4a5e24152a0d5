#include "cli/weir/whole_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace weir::command {

std::string write_whole_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error)
    return fmt::format("cannot make the directory {}: {}", path.parent_path().string(), error.message());
  auto partial = path;
  partial += fmt::format(".{}.part", ::getpid());
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
  if (!written || std::rename(partial.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    std::remove(partial.c_str());
    return fmt::format("cannot write {}: {}", path.string(), std::strerror(reason));
  }
  return {};
}

}  // namespace weir::command
