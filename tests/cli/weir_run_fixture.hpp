// Runs `weir run` with a directory that looks like that of the drop-in libraries: it has shared objects with
// these names, which the dynamic linker accepts.
#pragma once

#include "tests/cli/run_weir.hpp"

namespace weir::command {

class WeirRun : public testing::Test {
 protected:
  WeirRun() {
    for (const char* name : {"libibverbs.so.1", "librdmacm.so.1"})
      fs::copy_file(OTHER_VERBS, libraries_.path() / name);
  }
  Ended run(std::vector<std::string> command) {
    command.insert(command.begin(), {"run", "--lib-dir", libraries_.path(), "--"});
    return run_weir(command);
  }
  TemporaryDirectory libraries_;
};

}  // namespace weir::command
