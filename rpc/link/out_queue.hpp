// What waits to be written to one connection: small frames encoded contiguously, and references to large
// frames and attachments. One system call sends any number of frames.
//
// Threading: none of its own. Memory: grows with what waits; its user limits that (bytes()).
#pragma once

#include <asio/buffer.hpp>
#include <cstddef>
#include <deque>
#include <span>

#include "rpc/wire/bytes.hpp"

namespace weir::rpc {

class OutQueue {
 public:
  static constexpr std::size_t keep_capacity = 256 << 10;

  // Encode small frames at its end.
  Bytes& encoded() { return encoded_; }
  // A large frame or an attachment, after what is encoded so far. `owner`, not 0, names it for own().
  void attach(Buffer attachment, std::uint64_t owner = 0);
  // Copies what is unsent of the attachments of `owner`, whose memory may go away now.
  void own(std::uint64_t owner);
  // Bytes before byte `position` of what is encoded so far, which no attachment is beyond; own_lent() follows
  // before they go away, and copies what is unsent of all that were lent.
  void lend(std::size_t position, std::span<const std::byte> bytes);
  void own_lent();

  std::size_t bytes() const { return encoded_.size() - sent_ + attached_bytes_; }
  bool empty() const { return bytes() == 0; }
  // The front of the queue; how many of `pieces` were set. Valid until anything is encoded or consumed. What
  // is encoded comes in pieces shorter than large_piece_bytes, what is attached each in one.
  std::size_t gather(std::span<asio::const_buffer> pieces) const;
  void consume(std::size_t bytes);
  void clear();

 private:
  struct Attachment {
    std::size_t position;  // in encoded_, before which it goes
    Buffer buffer;
    std::uint64_t owner;
    bool lent = false;
  };
  void own(Attachment& attachment);

  Bytes encoded_;
  std::size_t sent_ = 0;  // of encoded_
  std::deque<Attachment> attachments_;
  std::size_t attachment_sent_ = 0;  // of the first
  std::size_t attached_bytes_ = 0;   // not sent, of all
};

}  // namespace weir::rpc
