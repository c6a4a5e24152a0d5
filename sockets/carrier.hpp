// One direction of a connection whose bytes change carriers: TCP, a ring in the receiver's memory, TCP again.
//
// A byte's place in the stream is its position, counted from 0 when the connection began, over all carriers.
// The sender decides: it writes `ring_from`, then makes `changes` odd ("from there on by the ring"), later
// `tcp_from` and even again. The receiver takes TCP up to `ring_from`, the ring up to `tcp_from`, then TCP.
// No byte of ours travels on TCP.
//
// Invariants:
// 1. The sender enters the ring again only when the receiver has seen all changes so far, so no word is
// overwritten that
//    the receiver still needs, and the ring is empty when it is entered.
// 2. A byte is published (`produced`) after it lies in the ring; `consumed` after it was copied out.
// 3. The receiver may have read TCP just before it saw a change: took_tcp() says how many of those bytes are
// next in the
//    stream; the others were sent behind the ring's and are held until their turn.
//
// Threading: one sender and one receiver at a time (gate.hpp); they may be different processes. Each word has
// one writer. No I/O, no clock. What the other side's words may say is checked: nonsense gives Broken, never
// an assertion.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::sockets {

// Written by the sender, read by the receiver.
struct SenderWords {
  std::atomic<std::uint64_t> produced;   // the ring holds the bytes before this position
  std::atomic<std::uint64_t> changes;    // of carriers; odd: the ring
  std::atomic<std::uint64_t> ring_from;  // where the latest stretch in the ring begins
  std::atomic<std::uint64_t> tcp_from;   // and where it ended
};

// Written by the receiver, read by the sender.
struct ReceiverWords {
  std::atomic<std::uint64_t> consumed;      // the ring's bytes before this position may be overwritten
  std::atomic<std::uint64_t> changes_seen;  // how many changes the receiver has passed
  std::atomic<std::uint64_t> wants_tcp;     // a Want
};

enum class Want : std::uint64_t {
  any,          // the sender chooses
  tcp,          // do not enter the ring, leave it with the next bytes; the receiver reads what is in it
  unread_back,  // that, and send by TCP what the receiver, who reads no more now, has not read
};

// What an end knows of itself. In memory that a forked child shares, so that both know.
struct EndState {
  std::atomic<std::uint64_t> sent, received;          // positions
  std::atomic<std::uint64_t> sent_tcp, received_tcp;  // of these, bytes that the kernel carried
  std::atomic<std::uint64_t> changes_seen;            // of the peer's sending side
};

class Outgoing {
 public:
  Outgoing(EndState& self, SenderWords& own, const ReceiverWords& peer, std::uint64_t ring_bytes)
      : self_(self), own_(own), peer_(peer), ring_bytes_(ring_bytes) {}

  bool by_ring() const { return (own_.changes.load(std::memory_order_relaxed) & 1) != 0; }
  bool may_enter_ring() const;
  // False: the receiver asked for TCP meanwhile, and TCP it stays.
  bool enter_ring();
  void leave_ring();
  // The receiver cannot read the ring any more: what it has not read goes by TCP again, before all else. Also
  // after the ring was left, as long as nothing went by TCP since.
  bool can_hand_back() const;
  // The position of the first such byte.
  std::uint64_t first_unread() const;
  void leave_ring_at(std::uint64_t position);

  static constexpr std::uint64_t broken = ~std::uint64_t{0};
  // How many bytes fit into the ring; `broken` if the receiver's word is nonsense.
  std::uint64_t room() const;
  std::uint64_t place() const { return self_.sent.load(std::memory_order_relaxed) % ring_bytes_; }
  void put(std::uint64_t bytes);       // lie in the ring now
  void sent_tcp(std::uint64_t bytes);  // the kernel took them

 private:
  EndState& self_;
  SenderWords& own_;
  const ReceiverWords& peer_;
  std::uint64_t ring_bytes_;
};

// Where the next bytes of the stream are.
struct Source {
  enum class Kind { tcp, ring, broken };
  Kind kind;
  std::uint64_t bytes;  // tcp: take no more than this; ring: that many are there

  bool operator==(const Source&) const = default;
};

class Incoming {
 public:
  Incoming(EndState& self, ReceiverWords& own, const SenderWords& peer, std::uint64_t ring_bytes)
      : self_(self), own_(own), peer_(peer), ring_bytes_(ring_bytes) {}

  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};
  Source look() const;  // changes nothing
  Source next();        // the same, and passes changes
  std::uint64_t place() const { return self_.received.load(std::memory_order_relaxed) % ring_bytes_; }
  void took_ring(std::uint64_t bytes);
  // The kernel gave `bytes` after next() said tcp. How many of them come next in the stream: the rest is to
  // be held, and comes, without took_tcp(), when next() says tcp again.
  std::uint64_t took_tcp(std::uint64_t bytes);
  void took_held(std::uint64_t bytes);

 private:
  struct At {
    std::uint64_t received, seen;
  };
  Source find(At& at) const;

  EndState& self_;
  ReceiverWords& own_;
  const SenderWords& peer_;
  std::uint64_t ring_bytes_;
};

}  // namespace weir::sockets
