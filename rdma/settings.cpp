#include "rdma/settings.hpp"

#include <array>
#include <string>

namespace weir::rdma {

Result<void> check(const StreamSettings& settings) {
  struct Range {
    const char* name;
    std::uint64_t value, least, most;
  };
  const std::array ranges = {
      Range{"receive_buffer_bytes", settings.receive_buffer_bytes, 4 << 10, 16 << 20},
      Range{"send_buffer_bytes", settings.send_buffer_bytes, 4 << 10, 16 << 20},
      Range{"piece_bytes", settings.piece_bytes, 1 << 10, 16 << 20},
      Range{"receive_depth", settings.receive_depth, 16, 8192},
      Range{"send_depth", settings.send_depth, 16, 8192},
      Range{"signal_interval", settings.signal_interval, 1, settings.send_depth / 2u},
  };
  for (const Range& range : ranges) {
    if (range.value >= range.least && range.value <= range.most) continue;
    return fail(Errc::bad_setting, std::string(range.name) + " is " + std::to_string(range.value) +
                                       ", allowed are " + std::to_string(range.least) + " to " +
                                       std::to_string(range.most));
  }
  return {};
}

}  // namespace weir::rdma
