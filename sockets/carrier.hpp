// One direction of a connection whose bytes change carriers: TCP, a ring in the receiver's memory, TCP again.
//
// A byte's position counts from 0 at the start of the connection, over all carriers. The sender decides: it
// writes `ring_from`, then makes `changes` odd ("by the ring from there on"); later it writes `tcp_from` and
// makes `changes` even again. The receiver reads TCP up to `ring_from`, the ring up to `tcp_from`, then TCP.
// TCP carries none of our own bytes.
//
// Invariants:
// 1. The sender re-enters the ring only after the receiver has seen all changes so far.
//    So the sender overwrites no word that the receiver still needs,
//    and the ring is empty when the sender enters it.
// 2. `produced` publishes a byte once it lies in the ring; `consumed` frees it once it was copied out.
// 3. The receiver may have read TCP just before it saw a change.
//    took_tcp() says how many of those bytes are next in the stream.
//    The others were sent after the ring's bytes and are held until their turn.
//
// Threading: one sender and one receiver at a time (gate.hpp); they may be in different processes. Each
// word has one writer. No I/O, no clock. The words of the other side are checked: nonsense gives
// `broken`, never an assertion.
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
  tcp,          // do not enter the ring; leave it with the next bytes. The receiver empties it
  unread_back,  // as tcp, and resend by TCP what the receiver, which has stopped, has not read
};

// An end's own state. It lies in memory shared with forked children, so that both processes know it.
struct EndState {
  std::atomic<std::uint64_t> sent, received;          // positions
  std::atomic<std::uint64_t> sent_tcp, received_tcp;  // the part of these that the kernel carried
  std::atomic<std::uint64_t> changes_seen;            // of the peer's sending side
};

class Outgoing {
 public:
  Outgoing(EndState& self, SenderWords& own, const ReceiverWords& peer, std::uint64_t ring_bytes)
      : self_(self), own_(own), peer_(peer), ring_bytes_(ring_bytes) {}

  bool by_ring() const { return (own_.changes.load(std::memory_order_relaxed) & 1) != 0; }
  bool may_enter_ring() const;
  // False: the receiver has asked for TCP meanwhile, so this direction stays on TCP.
  bool enter_ring();
  void leave_ring();
  // The receiver can no longer read the ring: what it has not read goes by TCP again, before all else. This
  // also holds after leaving the ring, until something has been sent by TCP.
  bool can_hand_back() const;
  // The position of the first unread byte.
  std::uint64_t first_unread() const;
  void leave_ring_at(std::uint64_t position);

  static constexpr std::uint64_t broken = ~std::uint64_t{0};
  // How many bytes fit into the ring; `broken` if the receiver's word is nonsense.
  std::uint64_t room() const;
  std::uint64_t place() const { return self_.sent.load(std::memory_order_relaxed) % ring_bytes_; }
  void put(std::uint64_t bytes);       // they lie in the ring now
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
  std::uint64_t bytes;  // tcp: read no more than this; ring: this many are available

  bool operator==(const Source&) const = default;
};

class Incoming {
 public:
  Incoming(EndState& self, ReceiverWords& own, const SenderWords& peer, std::uint64_t ring_bytes)
      : self_(self), own_(own), peer_(peer), ring_bytes_(ring_bytes) {}

  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};
  Source look() const;  // changes nothing
  Source next();        // as look(), and moves past changes
  std::uint64_t place() const { return self_.received.load(std::memory_order_relaxed) % ring_bytes_; }
  void took_ring(std::uint64_t bytes);
  // The kernel returned `bytes` after next() said tcp. Returns how many of them come next in the stream. Hold
  // the rest: its turn comes, without took_tcp(), when next() says tcp again.
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
