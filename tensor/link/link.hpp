// Carries one peer's conversation with a hub: messages, and transfers that end with a record. Implemented by
// RdmaLink and TcpLink.
//
// Messages arrive whole and in order. When a transfer's record is reported, all of its bytes are in place. If
// the other end breaks the protocol, only this link ends. Threading: the thread of the io_context that the
// link lives in; events are delivered from there, never from inside a call to the link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rdma/verbs/cm.hpp"
#include "tensor/arrays/rows.hpp"
#include "tensor/arrays/source.hpp"
#include "tensor/error.hpp"
#include "tensor/link/wire.hpp"
#include "transport/newcomers.hpp"

namespace weir::tensor {

class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // One or more whole messages (wire::take_message).
  virtual void on_frame(std::span<const std::byte> frame) = 0;
  // An expected transfer is complete.
  virtual void on_written(const wire::Record& record) = 0;
  // All data that read() asked for have arrived.
  virtual void on_read(std::uint32_t index) = 0;
  // The link ended. No event follows, and no more data are written into expected memory.
  virtual void on_end(const Error& cause) = 0;
};

// Bytes to write into the other end's memory, and the record that reports them.
struct Transfer {
  std::shared_ptr<const Source> source;  // kept until the bytes are out
  std::vector<Extent> extents = {};      // of the source's bytes; empty: all of them
  wire::Memory to;                       // at least as large as what is sent
  wire::Record record;
};

class Link {
 public:
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // False once the link has ended, before on_end(); data that arrive after break_off() are ignored.
  virtual bool is_up() const = 0;
  // Queues a message. Messages that wait share a frame. If more than 1024 wait for the other end, the link
  // ends.
  virtual void send(const wire::Message& message) = 0;
  virtual void write(Transfer transfer) = 0;
  // Announces memory for the transfer with this index; returns what to send to the other end. The caller
  // keeps the memory valid until on_written(), forget() or the end of the link.
  virtual Result<wire::Memory> expect(std::uint32_t index, std::span<std::byte> memory) = 0;
  virtual void forget(std::uint32_t index) = 0;
  // Where a source lies, for the other end to read; bad_array if it has more than most_sources pieces.
  virtual Result<std::vector<wire::Memory>> expose(const Source& source) = 0;
  // Reads what the other end exposed into the memory that was expected under this index.
  virtual Result<void> read(std::uint32_t index, std::span<const wire::Memory> sources) = 0;
  virtual bool can_read() const = 0;
  // Closes the link and gives it up: no event follows. Messages already queued still go out.
  virtual void leave() = 0;
  // Ends the link at once and drops transfers in progress; on_end() follows.
  virtual void break_off(const Error& cause) = 0;
  // The other end's; 0 if it is not a hub.
  virtual std::uint64_t generation() const = 0;
  // The other end's address.
  virtual rdma::Endpoint remote() const = 0;
  // The other end has shown a certificate that an authority of ours signed.
  virtual bool is_certified() const { return false; }
  // How many bytes of the transfer with this index have arrived; nothing if only the other end knows.
  virtual std::optional<std::uint64_t> arrived(std::uint32_t index) const = 0;

  // A hub's end is a newcomer, and leaves first when there is no place for others, until the peer has asked
  // for something.
  void is_newcomer(transport::Newcomers::Stay stay) { stay_ = std::move(stay); }
  void settle() { stay_.settle(); }

 protected:
  Link() = default;

 private:
  transport::Newcomers::Stay stay_;
};

}  // namespace weir::tensor
