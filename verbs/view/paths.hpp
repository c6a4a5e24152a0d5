// Which paths the view answers for, and where they are in its tree.
#pragma once

#include <fcntl.h>

#include <climits>
#include <string_view>

namespace weir::verbs {

// A path as the program gave it, or its place in the tree. Ours are the absolute ones, with as many slashes
// and dots between the names as the kernel lets pass, and those that begin at the root because the directory
// they are relative to is it (hwloc's all do). Cheap for all others: a comparison of prefixes.
class SeenPath {
 public:
  explicit SeenPath(const char* path) : SeenPath(AT_FDCWD, path) {}
  SeenPath(int directory, const char* path);
  operator const char*() const { return given_; }
  bool ours() const { return given_ == inside_; }

 private:
  const char* given_;
  char inside_[PATH_MAX];
};

// The other way: a path in the tree as the program knows it; other paths stay. In place; the result is never
// longer.
void show_as_known(char* path);

// Whether that path, written out in full, is one of ours.
bool is_viewed(std::string_view path);

}  // namespace weir::verbs
