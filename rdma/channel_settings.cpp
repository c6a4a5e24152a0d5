#include "rdma/channel_settings.hpp"

#include <array>
#include <bit>
#include <string>

#include "rdma/channel/channel_wire.hpp"
#include "rdma/setting_range.hpp"

namespace weir::rdma {

Result<void> check(const ChannelSettings& settings) {
  const std::array ranges = {
      SettingRange{"block_bytes", settings.block_bytes, channel_wire::min_block_bytes,
                   channel_wire::max_block_bytes},
      SettingRange{"rendezvous_depth", settings.rendezvous_depth, 1, channel_wire::max_rendezvous_depth},
      SettingRange{"receive_blocks", settings.receive_blocks,
                   std::uint64_t{channel_wire::reserved_receives(settings.rendezvous_depth)} + 2, 4096},
      SettingRange{"send_blocks", settings.send_blocks, 4, 4096},
      SettingRange{"signal_interval", settings.signal_interval, 1, settings.send_blocks / 2u},
      SettingRange{"inline_bytes", settings.inline_bytes, 0, channel_wire::max_inline_bytes},
      SettingRange{"rnr_wait in microseconds", static_cast<std::uint64_t>(settings.rnr_wait.count()), 10,
                   655'360},
      SettingRange{"piece_bytes", settings.piece_bytes == 0 ? UINT32_MAX : settings.piece_bytes,
                   channel_wire::min_part_bytes, UINT32_MAX},
      SettingRange{"max_message_bytes", settings.max_message_bytes, 1, channel_wire::max_message_bytes},
  };
  if (auto checked = check_ranges(ranges); !checked) return checked;
  if (!std::has_single_bit(settings.block_bytes))
    return fail(Errc::bad_setting,
                "block_bytes is " + std::to_string(settings.block_bytes) + ", allowed are powers of two");
  return {};
}

}  // namespace weir::rdma
