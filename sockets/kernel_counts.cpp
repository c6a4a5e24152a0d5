#include "sockets/kernel_counts.hpp"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

#include "sockets/calls/system_calls.hpp"

namespace weir::sockets {

std::optional<KernelCounts> kernel_counts(int fd) {
  constexpr int tries = 4;
  constexpr std::uint8_t state_established = 1;
  const auto info_of = [fd](tcp_info& info) {
    info = {};
    socklen_t size = sizeof info;
    return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           size >= offsetof(tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans;
  };
  for (int i = 0; i < tries; ++i) {
    tcp_info before, after;
    int unread = 0, unacknowledged = 0;
    if (!info_of(before) || system_calls().ioctl(fd, SIOCINQ, &unread) != 0 ||
        system_calls().ioctl(fd, SIOCOUTQ, &unacknowledged) != 0 || !info_of(after))
      return std::nullopt;
    if (before.tcpi_bytes_received != after.tcpi_bytes_received ||
        before.tcpi_bytes_acked != after.tcpi_bytes_acked)
      continue;  // more came
    return KernelCounts{
        .written = after.tcpi_bytes_sent - after.tcpi_bytes_retrans + after.tcpi_notsent_bytes,
        .acknowledged = after.tcpi_bytes_acked + static_cast<std::uint64_t>(unacknowledged),
        .read = after.tcpi_bytes_received - static_cast<std::uint64_t>(unread),
        .established = after.tcpi_state == state_established};
  }
  return std::nullopt;
}

}  // namespace weir::sockets
