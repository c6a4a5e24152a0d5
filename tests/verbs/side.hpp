// One end of a connection in the process tests: device, domain, CQ with channel, one RC queue pair, and
// memory of the requested kind. The test is one side, the peer program (peer.cpp) is the other.
#pragma once

#include <span>

#include "verbs_test.hpp"

namespace weir::verbs_test {

enum class MemoryKind : std::uint32_t {
  ordinary,  // only the kernel can reach it from another process
  shared,    // a memfd, which the peer can map
};

class SideMemory {
 public:
  SideMemory(MemoryKind kind, std::size_t bytes);
  ~SideMemory();
  SideMemory(const SideMemory&) = delete;
  SideMemory& operator=(const SideMemory&) = delete;
  std::span<std::uint8_t> bytes() const { return {data_, size_}; }
  // The file behind shared memory, which stays mapped. False: not done.
  bool cut_file_to(std::size_t bytes) const;

 private:
  int file_ = -1;
  std::uint8_t* data_;
  std::size_t size_;
};

// What the other side needs to know.
struct SideAddress {
  std::uint32_t qpn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t addr = 0;
};

class Side {
 public:
  static constexpr std::uint32_t queue_depth = 128;
  Side(MemoryKind kind, std::size_t bytes);

  SideAddress address() const {
    return {qp->qp_num, mr->rkey, reinterpret_cast<std::uint64_t>(bytes().data())};
  }
  std::span<std::uint8_t> bytes() const { return memory.bytes(); }
  ibv_sge sge(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(bytes().data()) + offset, static_cast<std::uint32_t>(length),
            mr->lkey};
  }
  int post(ibv_wr_opcode opcode, std::uint64_t id, std::size_t length, const SideAddress& to,
           std::uint32_t imm = 0, unsigned flags = IBV_SEND_SIGNALED);
  int receive(std::uint64_t id, std::size_t offset, std::size_t length) {
    return post_recv(qp.get(), id, sge(offset, length));
  }

  SideMemory memory;
  Context context;
  Pd pd;
  Mr mr;
  Channel channel;
  Cq cq;
  Qp qp;
};

// A repeatable content, and a checksum over what arrived (FNV-1a).
void fill(std::span<std::uint8_t> bytes, std::uint32_t seed);
std::uint64_t checksum(std::span<const std::uint8_t> bytes);

}  // namespace weir::verbs_test
