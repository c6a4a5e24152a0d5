#include "rdma/channel_settings.hpp"

#include <array>
#include <bit>
#include <string>

#include "rdma/channel_wire.hpp"

namespace weir::rdma {

Result<void> check(const ChannelSettings& settings) {
  struct Range {
    const char* name;
    std::uint64_t value, least, most;
  };
  const std::array ranges = {
      Range{"block_bytes", settings.block_bytes, channel_wire::min_block_bytes,
            channel_wire::max_block_bytes},
      Range{"rendezvous_depth", settings.rendezvous_depth, 1, channel_wire::max_rendezvous_depth},
      Range{"receive_blocks", settings.receive_blocks,
            std::uint64_t{channel_wire::reserved_receives(settings.rendezvous_depth)} + 2, 4096},
      Range{"send_blocks", settings.send_blocks, 4, 4096},
      Range{"signal_interval", settings.signal_interval, 1, settings.send_blocks / 2u},
      Range{"inline_bytes", settings.inline_bytes, 0, channel_wire::max_inline_bytes},
      Range{"rnr_wait in microseconds", static_cast<std::uint64_t>(settings.rnr_wait.count()), 10, 655'360},
      Range{"piece_bytes", settings.piece_bytes == 0 ? UINT32_MAX : settings.piece_bytes,
            channel_wire::min_part_bytes, UINT32_MAX},
      Range{"max_message_bytes", settings.max_message_bytes, 1, channel_wire::max_message_bytes},
  };
  for (const Range& range : ranges) {
    if (range.value >= range.least && range.value <= range.most) continue;
    return fail(Errc::bad_setting, std::string(range.name) + " is " + std::to_string(range.value) +
                                       ", allowed are " + std::to_string(range.least) + " to " +
                                       std::to_string(range.most));
  }
  if (!std::has_single_bit(settings.block_bytes))
    return fail(Errc::bad_setting,
                "block_bytes is " + std::to_string(settings.block_bytes) + ", allowed are powers of two");
  return {};
}

}  // namespace weir::rdma
