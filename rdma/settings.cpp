#include "rdma/settings.hpp"

#include <array>

#include "rdma/setting_range.hpp"

namespace weir::rdma {

Result<void> check(const StreamSettings& settings) {
  const std::array ranges = {
      SettingRange{"receive_buffer_bytes", settings.receive_buffer_bytes, 4 << 10, 16 << 20},
      SettingRange{"send_buffer_bytes", settings.send_buffer_bytes, 4 << 10, 16 << 20},
      SettingRange{"piece_bytes", settings.piece_bytes, 1 << 10, 16 << 20},
      SettingRange{"receive_depth", settings.receive_depth, 16, 8192},
      SettingRange{"send_depth", settings.send_depth, 16, 8192},
      SettingRange{"signal_interval", settings.signal_interval, 1, settings.send_depth / 2u},
  };
  return check_ranges(ranges);
}

}  // namespace weir::rdma
