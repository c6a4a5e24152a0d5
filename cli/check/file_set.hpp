// Which files a path means: a file by itself, a manifest with the files of its log, or a folder of both.
//
// Names come out of a manifest only as plain names in the manifest's own folder.
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
  std::string manifest;  // empty: one file by itself
  std::string wrong;     // what is wrong with the manifest; then there are no files
  std::vector<WantedFile> files;
};

// In a folder: each log by its manifest, here and one folder below; snapshots (*.rdb); logs of one file
// (*.aof) where there is no manifest. The error: it cannot be read, or there is nothing of the kind.
std::expected<std::vector<FileSet>, std::string> files_meant(const std::string& path);

}  // namespace weir::check
