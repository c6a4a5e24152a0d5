// The writer's books on the buffer that the peer announced: filled from offset 0 upward, to its very end,
// never wrapped. When it is full there is nothing to do until the next announcement. Pure; one thread.
#pragma once

#include <cstdint>

#include "rdma/stream/control_message.hpp"

namespace weir::rdma {

class SendWindow {
 public:
  // A new announcement replaces the old buffer, also one that is not full: what the peer says last counts.
  void open(const RegisterXferMemory& announced) {
    announced_ = announced;
    offset_ = 0;
  }

  std::uint32_t room() const { return announced_.length_bytes - offset_; }
  std::uint64_t address() const { return announced_.addr + offset_; }
  std::uint32_t rkey() const { return announced_.rkey; }
  std::uint64_t base() const { return announced_.addr; }
  void advance(std::uint32_t bytes) { offset_ += bytes; }  // at most room()

 private:
  RegisterXferMemory announced_;
  std::uint32_t offset_ = 0;
};

}  // namespace weir::rdma
