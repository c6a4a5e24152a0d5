// The folder of the log's files. Each file is reached by a plain name relative to the open folder, so nothing
// outside is touched, whatever a manifest or a setting says.
//
// Errors are for users: "cannot write appendonlydir/x: No space left on device".
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "kv/core/disk.hpp"
#include "transport/owned_fd.hpp"

namespace weir::kv::aof {

class Folder {
 public:
  // Opens the folder of that name in `parent`, and creates it if needed.
  static std::expected<Folder, std::string> open(const std::string& parent, const std::string& name,
                                                 Disk disk);

  const std::string& path() const { return path_; }
  bool has(const std::string& name) const;
  std::uint64_t size(const std::string& name) const;  // 0: no such file
  std::expected<OwnedFd, std::string> open_to_read(const std::string& name) const;
  std::expected<OwnedFd, std::string> open_to_append(const std::string& name) const;  // creates it if needed
  // An empty file in place of any earlier one.
  std::expected<OwnedFd, std::string> make(const std::string& name) const;
  std::expected<std::string, std::string> read(const std::string& name, std::size_t most) const;
  // At any moment the disk holds either the old contents or the new ones.
  std::expected<void, std::string> replace(const std::string& name, std::string_view contents) const;
  std::expected<void, std::string> rename(const std::string& from, const std::string& to) const;
  // Moves a file from elsewhere here, under that name.
  std::expected<void, std::string> take(const std::string& path, const std::string& name) const;
  std::expected<void, std::string> cut(const std::string& name, std::uint64_t size) const;
  void remove(const std::string& name) const;

  std::expected<void, std::string> write(const OwnedFd& file, const std::string& name,
                                         std::string_view bytes) const;
  std::expected<void, std::string> sync(const OwnedFd& file, const std::string& name) const;

 private:
  std::expected<void, std::string> sync_entries(const std::string& name) const;
  Folder(std::string path, OwnedFd fd, Disk disk)
      : path_(std::move(path)), fd_(std::move(fd)), disk_(std::move(disk)) {}
  std::unexpected<std::string> failed(std::string_view what, const std::string& name) const;
  std::expected<OwnedFd, std::string> open(const std::string& name, int flags, std::string_view what) const;

  std::string path_;
  OwnedFd fd_;
  Disk disk_;
};

// Whether a regular file is there: not a link, a folder or anything else.
bool is_file(const std::string& path);

}  // namespace weir::kv::aof
