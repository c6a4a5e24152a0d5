// The file of --json: opened before the load runs, so that a path that cannot be written costs nobody a
// measurement. What it held stays until there is something new.
#pragma once

#include <string>

#include "cli/client/error.hpp"
#include "transport/owned_fd.hpp"

namespace weir::benchmark {

class JsonFile {
 public:
  // "-" is standard output; empty: none, and nothing is written.
  static client::Result<JsonFile> open(const std::string& name);

  // In place of what is there.
  client::Result<void> write(const std::string& text) const;

 private:
  std::string name_;
  OwnedFd fd_;
};

}  // namespace weir::benchmark
