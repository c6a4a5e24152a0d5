// The frame: what every message on the wire begins with, and how a stream of bytes becomes frames again.
// Pure: no I/O, no clock.
//
//   offset  bytes
//        0      2  magic, 'W' 'r'
//        2      1  version, 1
//        3      1  kind (FrameKind)
//        4      2  flags (FrameFlag)
//        6      2  status: 0, or in a reply the cause of its failure (Errc); its body is then text
//        8      8  id: the caller's number of the call; every frame of a call carries it;
//                  in settings frames: the sender's hello (hello.hpp)
//       16      8  method: FNV-1a, 64 bits, of the function's name; 0 but in requests
//       24      4  in requests: microseconds that the caller still waits, 0 for ever, 2^32-1 that long or
//       longer;
//                  in credit frames: bytes of items that the peer may send besides;
//                  in settings frames: which compressions the sender takes (compression.hpp)
//       28      4  bytes of the body, which follows the header
//       32      4  bytes of the attachment, which follows the body: whatever the caller likes
//       36      1  codec of the body of a request or a reply: 0 MessagePack, 1 Protobuf (codec/codec.hpp)
//       37      3  0
//
// A stream is a request with the flag `streaming`: then items follow, each a frame with one value, in either
// direction. The client ends its direction with `end`; the server ends the stream with the reply. Each end
// may begin to send an item while its credit is above 0, and pays the body and 40 bytes for it: both begin
// with 64 KiB (stream_start_credit), and the receiver grants more with credit frames.
//
// The body of a request, a reply or an item may be compressed (compression.hpp) once the other end said in a
// settings frame that it takes that: a client sends one when it connects, and the server answers with its
// own. Lengths in the header are those on the wire; what a stream pays, and what limits
// bound, are the lengths as they were.
//
// A reply with the id 0 says why the server ends the connection. Where a frame beyond its limits is the cause
// (Errc::too_large), the attachment is the id of that, as 8 bytes.
//
// Little endian. Whatever does not parse ends the connection: there is no finding the next frame after it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "rpc/error.hpp"
#include "rpc/wire/bytes.hpp"

namespace weir::rpc {

enum class FrameKind : std::uint8_t {
  request = 1,
  reply = 2,
  cancel = 3,   // of the request with this id; a reply may or may not still come
  goodbye = 4,  // from a server: no new requests, please; those under way are answered
  item = 5,     // one value of the stream with this id
  end = 6,      // from a client: no more items of this stream
  credit = 7,   // more items may come
  ping = 8,     // is anybody there? The peer answers with pong and the same id
  pong = 9,
  credentials = 10,  // from a client: its token, for all requests that follow
  settings = 11,     // the sender's hello, and which compressions it takes; at most one from each end
};

struct FrameFlag {
  enum Bit : std::uint16_t {
    idempotent = 1,  // a request that may run twice
    streaming = 2,   // a request that begins a stream
    traced = 4,      // a request whose body begins with a trace context (trace_context.hpp)
    compressed = 8,  // a request, reply or item whose body is compressed (compression.hpp)
    typed = 16,      // a request that says which types its caller has (agreed_schemas.hpp)
    metadata = 32,   // a request or reply whose body has metadata before the rest (metadata.hpp)
    detailed = 64,   // a reply of a failure whose body is a DetailedFailure (error_details.hpp)
  };
};
constexpr std::uint16_t known_flags = 127;

constexpr std::size_t frame_header_bytes = 40;
constexpr std::uint8_t frame_version = 1;
constexpr std::int64_t stream_start_credit = 64 << 10;

struct FrameHeader {
  FrameKind kind = FrameKind::request;
  std::uint16_t flags = 0;
  std::uint16_t status = 0;
  std::uint64_t id = 0;
  std::uint64_t method = 0;
  std::uint32_t timeout_us = 0;
  std::uint32_t body_bytes = 0;
  std::uint32_t attachment_bytes = 0;
  std::uint32_t credit = 0;
  std::uint32_t compressions = 0;
  std::uint8_t codec = 0;

  bool operator==(const FrameHeader&) const = default;
};

void encode(const FrameHeader& header, std::byte* to);
Result<FrameHeader> parse_header(std::span<const std::byte, frame_header_bytes> bytes);

struct FrameLimits {
  std::uint32_t body_bytes = 64 << 20;
  std::uint32_t attachment_bytes = 1 << 30;
  std::uint32_t item_bytes = UINT32_MAX;  // of a stream, where that is less than body_bytes

  std::uint32_t body_of(const FrameHeader& header) const {
    return header.kind == FrameKind::item ? std::min(body_bytes, item_bytes) : body_bytes;
  }
  bool hold(const FrameHeader& header) const {
    return header.body_bytes <= body_of(header) && header.attachment_bytes <= attachment_bytes;
  }
};

struct Frame {
  FrameHeader header;
  std::span<const std::byte> body;  // valid while the sink runs
  Buffer attachment;
  std::size_t packed_bytes = 0;  // of the body as it came, if that was compressed
};

class FrameSink {
 public:
  // False: no more, the connection is ending.
  virtual bool on_frame(Frame& frame) = 0;
  // Memory for the attachment of a frame that begins to arrive.
  virtual Buffer attachment_for(const FrameHeader& header) { return Buffer(header.attachment_bytes); }
  // True: it must go where attachment_for() says, even if it comes in memory that may be kept.
  virtual bool wants_attachment_elsewhere(const FrameHeader&) { return false; }
  // A frame beyond the limits begins. True: the limits may have been raised, and count anew.
  virtual bool lift_limits(const FrameHeader&) { return false; }

 protected:
  ~FrameSink() = default;
};

// Bytes in, frames out. Frames that lie whole in what it is fed are handed on where they lie; what is cut off
// is kept, at most one header and body within the limits. Large pieces can be read from the socket to where
// they belong: `wanted()` says where.
class FrameReader {
 public:
  explicit FrameReader(const FrameLimits& limits) : limits_(limits) {}
  // Applies to frames that begin from now on.
  void set_limits(const FrameLimits& limits) { limits_ = limits; }

  Result<void> feed(std::span<const std::byte> bytes, FrameSink& sink);

  // Where the next bytes should be put; if empty, pass them to feed().
  std::span<std::byte> wanted(FrameSink& sink);
  Result<void> filled(std::size_t bytes, FrameSink& sink);
  // Offers bytes that may be kept where they are. Takes them and returns true if they are exactly the
  // attachment that comes next.
  bool keep(Buffer& bytes, FrameSink& sink);
  // The id in a header that announced more than the limits allow, which ended the reading; 0: there was none.
  std::uint64_t oversize() const { return oversize_; }
  // Of the frame that is under way: what it will be, as far as that is known, and what came of it.
  std::size_t expected_bytes() const {
    return have_header_ ? frame_bytes() + header_.attachment_bytes : partial_.size();
  }
  std::size_t arrived_bytes() const { return partial_.size() + (filling_ ? attachment_filled_ : 0); }
  // Nothing more will be fed, and cut-off data is dropped. Not from within a sink.
  void forget() {
    partial_ = Bytes();
    attachment_ = Buffer();
  }
  // The memory that the sink gave for the arriving attachment is going away: the rest is stored elsewhere.
  void divert_attachment();

 private:
  static constexpr std::size_t worth_reading_direct = 4096;
  static constexpr std::size_t keep_capacity = 64 << 10;

  Result<std::size_t> start(std::span<const std::byte> bytes, FrameSink& sink);
  Result<void> start_header(std::span<const std::byte> bytes, FrameSink& sink);
  Result<void> partial_grown(FrameSink& sink);
  void begin_attachment(FrameSink& sink);
  std::span<std::byte> attachment_room(FrameSink& sink);
  void finish_frame(FrameSink& sink);
  std::size_t frame_bytes() const { return frame_header_bytes + header_.body_bytes; }

  FrameLimits limits_;
  bool stopped_ = false;
  std::uint64_t oversize_ = 0;
  bool have_header_ = false;  // header_ is that of the frame in partial_
  FrameHeader header_;
  Bytes partial_;         // header and body, as far as they came
  Buffer attachment_;     // asked of the sink when its first byte is there
  bool filling_ = false;  // attachment_ is under way; header and body are whole in partial_
  std::size_t attachment_filled_ = 0;
};

}  // namespace weir::rpc
