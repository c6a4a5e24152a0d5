// What the kernel's RDMA netlink (NETLINK_RDMA, uapi/rdma/rdma_netlink.h) answers about devices and their
// ports. Pure; a request may be any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::verbs {

struct ListedDevice {
  std::string name;
  std::uint64_t guid = 0;  // in the host's order, of node and system image
  std::string firmware;
  std::uint32_t interface_index = 0;  // 0: it has none
  std::string interface;
};

// The messages that answer the requests in one datagram, one after another, for the socket with that number.
// Devices and ports are shown, singly and all, and that namespaces share them. Whatever else is asked is
// answered with EOPNOTSUPP, and a device that is not there with ENODEV. What is no request is not answered.
std::vector<std::byte> answer_rdma_netlink(std::span<const std::byte> datagram, std::uint32_t socket,
                                           std::span<const ListedDevice> devices);

}  // namespace weir::verbs
