#include "verbs/view/paths.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "verbs/view/tree.hpp"

namespace weir::verbs {
namespace {

constexpr std::array<std::string_view, 4> viewed = {"/sys/class/infiniband", "/sys/class/infiniband_verbs",
                                                    "/sys/devices/virtual/weir", "/dev/infiniband"};

}  // namespace

bool is_viewed(std::string_view path) {
  for (const std::string_view prefix : viewed)
    if (path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/')) return true;
  return false;
}

SeenPath::SeenPath(const char* path) : given_(path) {
  // Nearly every path that a program names ends here.
  if (path == nullptr || (std::strncmp(path, "/sys/", 5) != 0 && std::strncmp(path, "/dev/i", 6) != 0))
    return;
  if (!is_viewed(path)) return;
  const int before = errno;
  const std::string root = view_tree();
  errno = before;
  if (root.empty() || root.size() + std::strlen(path) >= sizeof inside_) return;
  std::memcpy(inside_, root.c_str(), root.size());
  std::strcpy(inside_ + root.size(), path);
  given_ = inside_;
}

void show_as_known(char* path) {
  const std::string root = existing_view_tree();
  if (root.empty() || std::strncmp(path, root.c_str(), root.size()) != 0 || path[root.size()] != '/') return;
  std::memmove(path, path + root.size(), std::strlen(path + root.size()) + 1);
}

}  // namespace weir::verbs
