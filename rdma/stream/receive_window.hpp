// The receiver's books on the buffers it announced to the peer.
//
// The peer fills an announced buffer from offset 0 upward and tells us with each immediate how many more
// bytes are there. Each announcement has a length of its own (ReceiveSize). When a buffer is full we announce
// the next: the same one if the reader has consumed it, else the second, so that a fast writer need not wait
// for the reader. Never before it is full: that breaks the peer's accounting.
//
// Invariants: bytes are read in the order they were delivered; at most one buffer is being filled; a buffer
// is announced only when every byte in it was consumed. Pure; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace weir::rdma {

class ReceiveWindow {
 public:
  static constexpr std::uint32_t buffers = 2;

  struct Readable {
    std::uint32_t buffer = 0;
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };

  // The buffer to announce now, if one is due.
  std::optional<std::uint32_t> due() const {
    if (filling_) return std::nullopt;
    const std::uint32_t last = reading_;
    if (consumed(last)) return last;  // all was read: the same again, it is warm in the cache
    const std::uint32_t other = 1 - last;
    if (consumed(other)) return other;
    return std::nullopt;
  }

  // `length` bytes, at least one, of `buffer`, as due() named it, were announced.
  void announced(std::uint32_t buffer, std::uint32_t length) {
    state_[buffer] = {.length = length, .delivered = 0, .taken = 0, .holds_data = true};
    if (consumed(reading_)) reading_ = buffer;
    filling_ = buffer;
  }

  // An immediate said that `bytes` more are there. False: they cannot be, the peer lies.
  bool deliver(std::uint32_t bytes) {
    if (bytes == 0) return true;
    if (!filling_) return false;
    State& state = state_[*filling_];
    if (bytes > state.length - state.delivered) return false;
    state.delivered += bytes;
    if (state.delivered == state.length) filling_.reset();
    return true;
  }

  Readable readable() const {
    const State& state = state_[reading_];
    return {reading_, state.taken, state.delivered - state.taken};
  }

  // At most readable().bytes.
  void consume(std::uint32_t bytes) {
    State& state = state_[reading_];
    state.taken += bytes;
    if (state.taken < state.length) return;
    state = {};
    if (state_[1 - reading_].holds_data) reading_ = 1 - reading_;
  }

 private:
  struct State {
    std::uint32_t length = 0;  // as it was announced
    std::uint32_t delivered = 0;
    std::uint32_t taken = 0;
    bool holds_data = false;  // announced and not yet consumed to its end
  };
  bool consumed(std::uint32_t buffer) const { return !state_[buffer].holds_data; }

  std::array<State, buffers> state_{};
  std::uint32_t reading_ = 0;
  std::optional<std::uint32_t> filling_;
};

}  // namespace weir::rdma
