// The file of --json. It is opened before the load, so that a path that cannot be written does not cost a
// measurement. Its old contents stay until there are new ones.
#pragma once

#include <string>

#include "cli/client/error.hpp"
#include "transport/owned_fd.hpp"

namespace weir::benchmark {

class JsonFile {
 public:
  // "-" is standard output; empty: no file, and nothing is written.
  static client::Result<JsonFile> open(const std::string& name);

  // Replaces the contents.
  client::Result<void> write(const std::string& text) const;

 private:
  std::string name_;
  OwnedFd fd_;
};

}  // namespace weir::benchmark
