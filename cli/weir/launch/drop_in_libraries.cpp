#include "cli/weir/launch/drop_in_libraries.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

namespace weir::command {
namespace {

namespace fs = std::filesystem;

// `error` is set if the directory cannot be searched.
bool holds_both(const fs::path& directory, std::error_code& error) {
  return fs::exists(directory / "libibverbs.so.1", error) && fs::exists(directory / "librdmacm.so.1", error);
}

}  // namespace

std::expected<std::string, std::string> find_drop_in_libraries(const std::string& given) {
  std::error_code error;
  std::vector<fs::path> places;
  if (!given.empty()) {
    places.push_back(fs::absolute(given));
  } else {
    const auto here = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const auto* place : {"../lib/verbs", "../lib/weir", "../" WEIR_INSTALL_LIBDIR "/weir"}) {
      auto path = (here / place).lexically_normal();
      if (places.empty() || places.back() != path) places.push_back(std::move(path));
    }
  }
  std::string looked_in;
  for (const auto& place : places) {
    if (holds_both(place, error)) return place.string();
    if (error == std::errc::permission_denied)
      return std::unexpected(
          place.string() +
          ", where Weir's libraries are looked for, is not open to this user (permission denied); "
          "let him in, install Weir (make install), or name a copy of that directory with --lib-dir");
    looked_in += (looked_in.empty() ? "" : ", ") + place.string();
  }
  return std::unexpected(
      "Weir's libibverbs.so.1 and librdmacm.so.1 are not in " + looked_in +
      "; build them (cmake --build --preset release) or name their directory with --lib-dir");
}

}  // namespace weir::command
