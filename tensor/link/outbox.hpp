// Messages and transfers that wait to go to the other end of a link, whatever carries it.
//
// Messages that wait share a frame as long as they fit, so a burst of requests takes few frames, while a
// single message goes out at once. The protocol bounds what the other end can make us queue: `most_messages`
// messages, and two transfers for each slot. If more would wait, the other end broke the protocol, and put()
// says so. Pure. Threading: the link's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/link/link.hpp"
#include "tensor/link/wire.hpp"

namespace weir::tensor {

// A transfer in progress, and how much of it is out.
class Outgoing {
 public:
  struct Part {
    std::span<const std::byte> bytes;
    std::size_t piece = 0;  // index into the source's pieces
  };

  explicit Outgoing(Transfer transfer);

  const Transfer& transfer() const { return transfer_; }
  std::uint64_t sent() const { return sent_; }
  bool all_sent() const { return sent_ == bytes_; }
  // The next parts to send, counted as sent: at most `most_bytes`, in at most as many parts as `room` holds.
  std::span<Part> take(std::span<Part> room, std::size_t most_bytes);

 private:
  Part piece(std::size_t which) const;

  Transfer transfer_;
  std::vector<Part> cut_;  // what the extents are; empty: the source's pieces
  std::size_t pieces_;
  std::uint64_t bytes_;
  std::size_t piece_ = 0, in_piece_ = 0;  // where the next take() starts
  std::uint64_t sent_ = 0;
};

class Outbox {
 public:
  static constexpr std::size_t most_messages = 1024;
  static constexpr std::size_t most_transfers = std::size_t{2} * wire::slots + 1;

  // Why the other end broke the protocol; empty if the message was queued.
  [[nodiscard]] std::string_view put(const wire::Message& message);
  [[nodiscard]] std::string_view put(Transfer transfer);

  bool empty() const { return frames_.empty() && transfers_.empty(); }
  bool has_frame() const { return !frames_.empty(); }
  // The oldest frame of encoded messages.
  const std::vector<std::byte>& frame() const { return frames_.front().bytes; }
  void frame_is_out();

  bool has_transfer() const { return !transfers_.empty(); }
  Outgoing& transfer() { return transfers_.front(); }
  void transfer_is_out() { transfers_.pop_front(); }

  void drop_transfers() { transfers_.clear(); }
  void clear();

 private:
  struct Frame {
    std::vector<std::byte> bytes;
    std::size_t messages = 1;
  };
  std::deque<Frame> frames_;
  std::size_t messages_ = 0;  // in all frames
  std::deque<Outgoing> transfers_;
};

}  // namespace weir::tensor
