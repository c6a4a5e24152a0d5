// The one thing that differs between tcp, unix, tls and rdma: how bytes get to the peer and back.
//
// A transport is connected when it is made. It reads by itself and hands the bytes to its user; it writes
// when asked, as much as it can take. A message transport fits, too: it may hand on any piece of the byte
// stream.
//
// Ownership: shared; it keeps itself alive while operations of the operating system point into it. After
// close() it calls its user no more, also when close() is called from within a callback. Threading: the
// io_context's thread.
#pragma once

#include <asio/buffer.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "rpc/error.hpp"
#include "rpc/wire/bytes.hpp"

namespace weir::rpc {

// A written piece of at least this size is a frame or an attachment by itself, and worth its own message.
// Small contiguous frames come in shorter pieces.
inline constexpr std::size_t large_piece_bytes = 32 << 10;

class TransportUser {
 public:
  // Where the next bytes should go, if the user cares: then filled() follows; otherwise received().
  virtual std::span<std::byte> wanted() = 0;
  virtual void filled(std::size_t bytes) = 0;
  virtual void received(std::span<const std::byte> bytes) = 0;
  // Offers bytes in memory that may be kept. Return false if they were not taken; received() follows.
  virtual bool keep(Buffer&) { return false; }
  // All available input has been read for now: the moment to send the results.
  virtual void round_ended() = 0;
  // After a write that took less than it was offered: there is room again.
  virtual void writable() = 0;
  // Asked when the peer says that it sends nothing more, though it may still read. Return true to keep the
  // transport open for data still to be written, until end_output() and the end of that data.
  virtual bool writes_on() const { return false; }
  // Nothing more will come. The transport is closed.
  virtual void ended(Error cause) = 0;

 protected:
  ~TransportUser() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual void start(TransportUser& user) = 0;
  // Takes bytes from the front of `pieces`; the memory may be reused at once. Fewer than offered: writable()
  // will run.
  virtual std::size_t write(std::span<const asio::const_buffer> pieces) = 0;
  // Memory to be filled and then written as one piece, from its beginning, which saves write() a copy. Empty
  // if there is none; then any other memory will do. It may outlive the transport.
  virtual Buffer block(std::size_t) { return {}; }
  // The same, or any other.
  Buffer buffer(std::size_t bytes) {
    Buffer place = block(bytes);
    return place.empty() ? Buffer(bytes) : std::move(place);
  }
  // True for memory of block(), or that was offered to keep(), which write() sends in place. It must stay
  // unchanged for longer than the write.
  virtual bool sends_in_place(std::span<const std::byte>) const { return false; }
  // Stops and resumes reading. Input that was already read is still handed on.
  virtual void read_on(bool on) = 0;
  // Nothing more will be written; the peer is told so if possible. Returns true if everything written reaches
  // the peer even if close() is called now.
  virtual bool end_output() = 0;
  virtual void close() = 0;
  // "tcp 127.0.0.1:4711", and whom a client's certificate names ("CN=..."; empty if there is none).
  virtual std::string peer() const = 0;
  virtual std::string peer_certificate() const { return {}; }
  // Whether requests may have arguments in JSON (json/json_codec.hpp): behind it is no client of the library.
  virtual bool carries_json() const { return false; }
};

using TransportPtr = std::shared_ptr<Transport>;

}  // namespace weir::rpc
