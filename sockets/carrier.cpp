#include "sockets/carrier.hpp"

#include <algorithm>

namespace weir::sockets {

bool Outgoing::may_enter_ring() const {
  return !by_ring() && peer_.wants_tcp.load() == 0 &&
         peer_.changes_seen.load() == own_.changes.load(std::memory_order_relaxed);
}

bool Outgoing::enter_ring() {
  own_.ring_from.store(self_.sent.load(std::memory_order_relaxed), std::memory_order_relaxed);
  // seq_cst with the receiver's wants_tcp: the receiver stores that and then reads `changes`. At least one
  // side sees the other's store, so no receiver leaves while bytes arrive in its ring.
  own_.changes.store(own_.changes.load(std::memory_order_relaxed) + 1);
  if (peer_.wants_tcp.load() == 0) return true;
  leave_ring();
  return false;
}

void Outgoing::leave_ring() {
  if (by_ring()) leave_ring_at(self_.sent.load(std::memory_order_relaxed));
}

bool Outgoing::can_hand_back() const {
  return by_ring() ||
         (own_.changes.load(std::memory_order_relaxed) != peer_.changes_seen.load() &&
          own_.tcp_from.load(std::memory_order_relaxed) == self_.sent.load(std::memory_order_relaxed));
}

std::uint64_t Outgoing::first_unread() const {
  const auto from = own_.ring_from.load(std::memory_order_relaxed);
  return std::clamp(peer_.consumed.load(), from, std::max(from, self_.sent.load(std::memory_order_relaxed)));
}

void Outgoing::leave_ring_at(std::uint64_t position) {
  own_.tcp_from.store(position);  // seq_cst: a receiver that waits for unread bytes reads this word alone
  if (!by_ring()) return;
  own_.changes.store(own_.changes.load(std::memory_order_relaxed) +
                     1);  // publishes tcp_from and the last `produced`
}

std::uint64_t Outgoing::room() const {
  const auto sent = self_.sent.load(std::memory_order_relaxed);
  const auto consumed = std::max(peer_.consumed.load(), own_.ring_from.load(std::memory_order_relaxed));
  if (consumed > sent || sent - consumed > ring_bytes_) return broken;
  return ring_bytes_ - (sent - consumed);
}

void Outgoing::put(std::uint64_t bytes) {
  const auto sent = self_.sent.load(std::memory_order_relaxed) + bytes;
  self_.sent.store(sent, std::memory_order_relaxed);
  // seq_cst with the receiver's bell: the receiver says that it sleeps and then looks here once more; we
  // store this and then look whether it sleeps.
  own_.produced.store(sent);
}

void Outgoing::sent_tcp(std::uint64_t bytes) {
  self_.sent.fetch_add(bytes, std::memory_order_relaxed);
  self_.sent_tcp.fetch_add(bytes, std::memory_order_relaxed);
}

// Moves `at` past every change already reached. At most two changes are ahead (invariant 1).
Source Incoming::find(At& at) const {
  for (int passed = 0; passed <= 2; ++passed) {
    const auto changes = peer_.changes.load();
    if (changes < at.seen || changes - at.seen > 2) break;
    const bool in_ring = (at.seen & 1) != 0;
    if (!in_ring) {
      if (changes == at.seen) return {Source::Kind::tcp, no_limit};
      const auto from = peer_.ring_from.load(std::memory_order_relaxed);
      if (from < at.received) break;
      if (from > at.received) return {Source::Kind::tcp, from - at.received};
    } else {
      const auto produced = peer_.produced.load();
      if (changes == at.seen) {
        const auto bytes = produced > at.received ? produced - at.received : 0;
        if (bytes > ring_bytes_) break;
        return {Source::Kind::ring, bytes};
      }
      const auto until = peer_.tcp_from.load();
      if (until < at.received || until - at.received > ring_bytes_) break;
      if (until > at.received) return {Source::Kind::ring, until - at.received};
    }
    ++at.seen;
  }
  return {Source::Kind::broken, 0};
}

Source Incoming::look() const {
  At at{self_.received.load(std::memory_order_relaxed), self_.changes_seen.load(std::memory_order_relaxed)};
  return find(at);
}

Source Incoming::next() {
  At at{self_.received.load(std::memory_order_relaxed), self_.changes_seen.load(std::memory_order_relaxed)};
  const auto before = at.seen;
  const Source source = find(at);
  if (source.kind != Source::Kind::broken && at.seen != before) {
    self_.changes_seen.store(at.seen, std::memory_order_relaxed);
    own_.consumed.store(at.received);
    own_.changes_seen.store(at.seen);
  }
  return source;
}

void Incoming::took_ring(std::uint64_t bytes) {
  const auto received = self_.received.load(std::memory_order_relaxed) + bytes;
  self_.received.store(received, std::memory_order_relaxed);
  own_.consumed.store(received);  // seq_cst with the sender's `waits_for_room`, as put() with the bell
}

std::uint64_t Incoming::took_tcp(std::uint64_t bytes) {
  self_.received_tcp.fetch_add(bytes, std::memory_order_relaxed);
  const auto received = self_.received.load(std::memory_order_relaxed);
  const auto seen = self_.changes_seen.load(std::memory_order_relaxed);
  std::uint64_t now = bytes;
  if (peer_.changes.load() != seen) {
    const auto from = peer_.ring_from.load(std::memory_order_relaxed);
    now = std::min(bytes, from > received ? from - received : 0);
  }
  self_.received.store(received + now, std::memory_order_relaxed);
  return now;
}

void Incoming::took_held(std::uint64_t bytes) { self_.received.fetch_add(bytes, std::memory_order_relaxed); }

}  // namespace weir::sockets
