// Requests of RDMA netlink, any bytes: an answer consists of whole messages.
#include <linux/netlink.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "verbs/view/rdma_netlink.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::verbs;
  const ListedDevice devices[] = {{"weir0", 1, "0.1.0", 2, "eth0"}, {"weir1", 2, "0.1.0", 0, ""}};
  const auto answer = answer_rdma_netlink({reinterpret_cast<const std::byte*>(data), size}, 7, devices);
  for (std::size_t at = 0; at < answer.size();) {
    nlmsghdr header{};
    if (answer.size() - at < sizeof header) std::abort();
    std::memcpy(&header, answer.data() + at, sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > answer.size() - at || header.nlmsg_pid != 7)
      std::abort();
    at += NLMSG_ALIGN(header.nlmsg_len);
  }
  return 0;
}
