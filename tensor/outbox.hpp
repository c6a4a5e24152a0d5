// What waits to go to the other end of a link, whatever carries it: messages, and transfers part by part.
//
// A message that finds others waiting shares their frame as far as it has room: many requests at once are few
// frames, and one alone waits for nobody. The protocol lets an end owe only so much: `most_messages`, and two
// transfers a slot. Whoever lets more wait broke it, and put() says so. Pure. Threading: the link's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/link.hpp"
#include "tensor/wire.hpp"

namespace weir::tensor {

// A transfer on its way: what of it is out.
class Outgoing {
 public:
  struct Part {
    std::span<const std::byte> bytes;
    std::size_t piece = 0;  // of the source
  };

  explicit Outgoing(Transfer transfer) : transfer_(std::move(transfer)) {}

  const Transfer& transfer() const { return transfer_; }
  std::uint64_t sent() const { return sent_; }
  bool all_sent() const { return sent_ == transfer_.source->bytes(); }
  // The next bytes, which count as sent: at most `most_bytes`, in as many parts as `room` has; those filled.
  std::span<Part> take(std::span<Part> room, std::size_t most_bytes);

 private:
  Transfer transfer_;
  std::size_t piece_ = 0, in_piece_ = 0;  // where it goes on
  std::uint64_t sent_ = 0;
};

class Outbox {
 public:
  static constexpr std::size_t most_messages = 1024;
  static constexpr std::size_t most_transfers = std::size_t{2} * wire::slots + 1;

  // What the other end broke; empty: it waits here.
  [[nodiscard]] std::string_view put(const wire::Message& message);
  [[nodiscard]] std::string_view put(Transfer transfer);

  bool empty() const { return frames_.empty() && transfers_.empty(); }
  bool has_frame() const { return !frames_.empty(); }
  // Of the oldest messages, encoded.
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
