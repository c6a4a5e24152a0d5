#include <fmt/core.h>

#include <cstdio>
#include <thread>

#include "cli/shell/key_scan.hpp"
#include "cli/shell/quoting.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {

int scan_keys(client::Session& session, const Options& options, Output output) {
  KeyScan scan(session, options.pattern, options.scan_count);
  while (!scan.done()) {
    const auto keys = scan.next();
    if (!keys) return failed(keys.error());
    for (const auto& key : *keys) {
      const auto line = (output == Output::formatted ? quoted(key) : key) + "\n";
      std::fwrite(line.data(), 1, line.size(), stdout);
    }
    if (options.interval_s > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
  }
  return 0;
}

}  // namespace weir::shell
