// The files that a path stands for: a single file, a manifest with the files of its log, or a folder of both.
//
// A manifest can only name files in its own folder, by plain names.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "cli/check/checked_file.hpp"

namespace weir::check {

struct WantedFile {
  std::string path;
  Expected expected = Expected::anything;
};

// Files that belong together, in the order in which a server reads them.
struct FileSet {
  std::string manifest;  // empty: a single file
  std::string wrong;     // the manifest's error; then there are no files
  std::vector<WantedFile> files;
};

// For a folder: each log with a manifest, here and one folder below; snapshots (*.rdb); single-file logs
// (*.aof) if there is no manifest. The error: the path cannot be read, or has no such files.
std::expected<std::vector<FileSet>, std::string> files_meant(const std::string& path);

}  // namespace weir::check
