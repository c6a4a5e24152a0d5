// The frame that is being encoded on a link.
//
// It is encoded in place: begin() leaves room for the header at the end of the queue, the body is appended to
// encoded(), pack() may compress it, and place() puts it where it is sent from, once its header is written.
// Nothing else may be encoded between begin() and place() or drop(). A frame that is known to be large gets
// its own block, from the transport if it has any: its body is copied once, where it is encoded. If the
// transport has no blocks, and most of the body is large texts and binaries, the frame refers to those until
// they are written from their places.
//
// Threading: the link's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rpc/link/out_queue.hpp"
#include "rpc/transport/transport.hpp"
#include "rpc/wire/body.hpp"
#include "rpc/wire/compression.hpp"
#include "rpc/wire/frame.hpp"

namespace weir::rpc {

class OpenFrame {
 public:
  // `queue` outlives it.
  explicit OpenFrame(OutQueue& queue) : queue_(queue) {}

  // Bodies of at least that many bytes are compressed from now on.
  void compress(Compression with, std::size_t from_bytes) {
    pack_with_ = with;
    pack_from_ = from_bytes;
  }

  // Returns where it begins; pass it on. Of what is expected of the body only large ones matter. `at_once`:
  // the transport takes what is written.
  std::size_t begin(BodySize expected, Transport& transport, bool at_once);
  Bytes& encoded() { return apart_begun_ ? apart_ : queue_.encoded(); }
  BodyPlace body() { return {encoded(), refers_ ? &references_ : nullptr}; }
  std::size_t body_bytes(std::size_t begin) {
    std::size_t bytes = encoded().size() - begin - frame_header_bytes;
    for (const Reference& reference : references_) bytes += reference.bytes.size();
    return bytes;
  }
  // Whether place() lends the queue memory of the application: OutQueue::own_lent() must follow.
  bool refers() const { return !references_.empty(); }

  // Compresses the body, if that is to be and makes it smaller, and says so in the header.
  CompressionCounts pack(std::size_t begin, FrameHeader& header);
  void place(std::size_t begin, Transport& transport);
  void drop(std::size_t begin);
  void forget_references() { references_.clear(); }

 private:
  bool may_refer(const BodySize& expected, bool at_once) const;

  static constexpr std::size_t never = SIZE_MAX;

  OutQueue& queue_;
  Bytes apart_;               // the frame that was begun, if it has a block of its own
  bool apart_begun_ = false;  // it has
  bool refers_ = false;       // it may refer to what is large
  std::vector<Reference> references_;
  Compression pack_with_ = Compression::none;
  std::size_t pack_from_ = never;  // bytes of a body from which on it is compressed
  Bytes packed_;
};

}  // namespace weir::rpc
