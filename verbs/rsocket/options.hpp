// What can be set on an rsocket, with the defaults of rsocket(7): the files of /etc/rdma/rsocket, read once.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::rsocket {

struct Defaults {
  // Four times what rdma-core has: the peer is told of room by halves, and with less a program that moves
  // megabytes is slower than over TCP. Pages of a ring exist once they were used.
  std::uint32_t receive_bytes = 1 << 19;
  std::uint32_t send_bytes = 1 << 19;
  std::uint16_t send_queue = 384;
  std::uint16_t receive_queue = 384;
  std::uint32_t inline_bytes = 64;
  std::uint32_t iomap_entries = 0;
  std::uint32_t polling_us = 10;

  static const Defaults& get();
  // For tests: the files of that folder. Absent files and nonsense leave a default as it is; values are
  // brought into their limits.
  static Defaults read(const char* folder);
};

struct Options {
  std::uint32_t receive_bytes = Defaults::get().receive_bytes;
  std::uint32_t send_bytes = Defaults::get().send_bytes;
  std::uint16_t send_queue = Defaults::get().send_queue;
  std::uint16_t receive_queue = Defaults::get().receive_queue;
  std::uint32_t inline_bytes = Defaults::get().inline_bytes;
  std::uint32_t iomap_entries = Defaults::get().iomap_entries;
  bool reuse_address = false, reuse_port = false;
  bool keep_alive = false;
  bool out_of_band_inline = false;
  bool no_delay = false;
  bool v6_only = false;
  linger lingering{};
  int keep_idle_s = 7200;
  std::vector<std::byte> route;  // RDMA_ROUTE, kept for who asks: on one host there is one way

  // 0 or an errno: ENOPROTOOPT for what rsockets do not have. `connected`: queue and buffer sizes are fixed.
  int set(int level, int name, const void* value, socklen_t size, bool connected);
  int get(int level, int name, void* value, socklen_t* size) const;
};

}  // namespace weir::rsocket
