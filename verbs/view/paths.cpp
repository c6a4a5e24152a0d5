#include "verbs/view/paths.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "verbs/view/tree.hpp"

namespace weir::verbs {
namespace {

constexpr std::array<std::string_view, 4> viewed = {"/sys/class/infiniband", "/sys/class/infiniband_verbs",
                                                    "/sys/devices/virtual/weir", "/dev/infiniband"};

class ErrnoKept {
 public:
  ErrnoKept() = default;
  ~ErrnoKept() { errno = before_; }
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;

 private:
  const int before_ = errno;
};

// From the root, with one slash before each name and no ".". A slash at the end stays: it follows a link.
std::string plainly(std::string_view names) {
  std::string plain;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find('/'), names.size());
    const std::string_view name = names.substr(0, end);
    names.remove_prefix(end);
    if (!name.empty() && name != ".") plain.append("/").append(name);
    if (names == "/" || names == "/.") return plain + "/";
    if (!names.empty()) names.remove_prefix(1);
  }
  return plain;
}

bool is_root(int directory) {
  struct stat root{}, given{};
  return ::stat("/", &root) == 0 && ::fstatat(directory, "", &given, AT_EMPTY_PATH) == 0 &&
         root.st_dev == given.st_dev && root.st_ino == given.st_ino;
}

}  // namespace

bool is_viewed(std::string_view path) {
  for (const std::string_view prefix : viewed)
    if (path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/')) return true;
  return false;
}

SeenPath::SeenPath(int directory, const char* path) : given_(path) {
  if (path == nullptr) return;
  const char* names = path;
  while (*names == '/' || (names[0] == '.' && names[1] == '/')) ++names;
  // Nearly every path that a program names ends here.
  if (std::strncmp(names, "sys/", 4) != 0 && std::strncmp(names, "dev/", 4) != 0) return;
  if (std::strstr(names, "infiniband") == nullptr && std::strstr(names, "weir") == nullptr) return;
  const ErrnoKept kept;
  const std::string plain = plainly(names);
  if (!is_viewed(plain) || (*path != '/' && !is_root(directory))) return;
  const std::string root = view_tree();
  if (root.empty() || root.size() + plain.size() >= sizeof inside_) return;
  std::memcpy(inside_, root.c_str(), root.size());
  std::strcpy(inside_ + root.size(), plain.c_str());
  given_ = inside_;
}

void show_as_known(char* path) {
  const std::string root = existing_view_tree();
  if (root.empty() || std::strncmp(path, root.c_str(), root.size()) != 0 || path[root.size()] != '/') return;
  std::memmove(path, path + root.size(), std::strlen(path + root.size()) + 1);
}

}  // namespace weir::verbs
