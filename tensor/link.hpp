// What carries one peer's conversation with a hub, whatever the network: messages, and transfers that end
// with a record. RdmaLink is RDMA.
//
// Messages arrive whole and in order; a transfer's bytes are all in place when its record is told. What the
// other end sends beyond what the protocol allows ends this link only. Threading: the thread of the
// io_context that the link lives in; events come from there, never from inside a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rdma/verbs/cm.hpp"
#include "tensor/error.hpp"
#include "tensor/source.hpp"
#include "tensor/wire.hpp"

namespace weir::tensor {

class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // Whole messages, one after the other (wire::take_message).
  virtual void on_frame(std::span<const std::byte> frame) = 0;
  // A transfer that was expected is complete.
  virtual void on_written(const wire::Record& record) = 0;
  // What read() was told to read is there.
  virtual void on_read(std::uint32_t index) = 0;
  // The link ended; nothing follows, and nothing writes into expected memory any more.
  virtual void on_end(const Error& cause) = 0;
};

// Bytes for the other end, to be written where it said, and the record that tells it.
struct Transfer {
  std::shared_ptr<const Source> source;  // kept until the bytes are out
  wire::Memory to;                       // of at least the source's bytes
  wire::Record record;
};

class Link {
 public:
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // False from before on_end() on: what comes after break_off() is nobody's.
  virtual bool is_up() const = 0;
  // Takes it; goes out as the other end has room, with others in one frame where several wait. A link whose
  // other end lets more than 1024 wait ends.
  virtual void send(const wire::Message& message) = 0;
  virtual void write(Transfer transfer) = 0;
  // Memory that the transfer of this index is to fill; what to tell the other end. It stays the caller's, who
  // keeps it until the record came, forget(), or the end.
  virtual Result<wire::Memory> expect(std::uint32_t index, std::span<std::byte> memory) = 0;
  virtual void forget(std::uint32_t index) = 0;
  // Where a source lies, for the other end to read; bad_array if that takes more than most_sources places.
  virtual Result<std::vector<wire::Memory>> expose(const Source& source) = 0;
  // Fills memory that was expected under this index from what the other end exposed.
  virtual Result<void> read(std::uint32_t index, std::span<const wire::Memory> sources) = 0;
  virtual bool can_read() const = 0;
  // Ends it and lets go of it: no event follows. What was sent still goes out.
  virtual void leave() = 0;
  // At once, what is under way included; on_end() follows.
  virtual void break_off(const Error& cause) = 0;
  // Of the other end: 0 if it is no hub.
  virtual std::uint64_t generation() const = 0;
  // Where the other end is.
  virtual rdma::Endpoint remote() const = 0;

 protected:
  Link() = default;
};

}  // namespace weir::tensor
