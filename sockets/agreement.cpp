// How two ends find each other in the table and connect their queue pairs. Service thread, but renew() and
// become_childs().
//
// claim: say that we are here. meet: the peer is here and has seen the same bytes go by: make a queue pair,
// offer it. connect: the peer offered one: connect ours to it. wait_for_peer: it did the same; see whether it
// can be written to, so that the program's first write need not find out. Each step stores a stage and rings
// the peer's service; none waits, so that a peer that is stopped keeps nobody.
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "sockets/connection.hpp"
#include "sockets/runtime.hpp"

namespace weir::sockets {
namespace {

constexpr std::chrono::seconds longest_search{2};

Stage stage_of(const Side& side) { return static_cast<Stage>(side.stage.load()); }
void set_stage(Side& side, Stage stage) { side.stage.store(static_cast<std::uint32_t>(stage)); }

// FNV-1a. Not a secret: who can write the table can do worse.
std::uint64_t digest(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash | 1;
}

Beginning beginning(const std::array<std::uint8_t, 64>& first, std::uint64_t bytes) {
  return {.after_16 = bytes >= 16 ? digest(std::span(first).first(16)) : 0,
          .after_64 = bytes >= 64 ? digest(first) : 0};
}

enum class Likeness { unknown, same, different };
Likeness compare(const Beginning& sent, const Beginning& received) {
  if (sent.after_16 == 0 || received.after_16 == 0) return Likeness::unknown;
  if (sent.after_16 != received.after_16) return Likeness::different;
  return sent.after_64 != 0 && received.after_64 != 0 && sent.after_64 != received.after_64
             ? Likeness::different
             : Likeness::same;
}

template <class T>
void make_anew(T& object) {
  new (&object) T;
}

}  // namespace

void Connection::renew(Record& record) {
  record_ = &record;
  calls_.store(0);
  closed_.store(false);
  fd_.store(-1);
  foreign_ = false;
  copies_ = 1;
  held_.clear();
  pending_error_ = 0;
  lost_ = false;
  since_change_ = 0;
  step_ = Step::claim;
  has_place_ = false;
  peer_ring_bytes_ = 0;
  registrations_.clear();
  life_.store(Life::observed);
}

void Connection::become_childs() {
  make_anew(agreement_);  // another thread of the parent may have had them
  make_anew(registrations_mutex_);
  users_.store(0);
  if (life() == Life::unused) return;
  if (engaged()) {
    foreign_ = true;
    return;
  }
  calls_.store(0);
  (void)link_.release();  // the parent's
  has_place_ = false;
  step_ = Step::claim;
  life_.store(Life::observed);
}

bool Connection::claim(std::uint32_t service) {
  if (table()->is_put_back()) {
    give_up(Reason::operator_said);
    return false;
  }
  const auto place = table()->claim(key_, lower_);
  if (!place) {
    give_up(Reason::table);
    return false;
  }
  place_ = *place;
  has_place_ = true;
  Side& mine = place_.mine();
  const auto& end = record_->end;
  mine.sent = beginning(sent_first_, end.sent.load());
  mine.received = beginning(received_first_, end.received.load());
  mine.service.store(service);
  std::strncpy(mine.program.data(), program_invocation_short_name, mine.program.size() - 1);
  set_stage(mine, Stage::present);
  step_ = Step::meet;
  return true;
}

bool Connection::mirrors_peer() const {
  const Side& mine = place_.mine();
  const Side& peer = place_.peer();
  const auto there = compare(mine.sent, peer.received), back = compare(peer.sent, mine.received);
  return there != Likeness::different && back != Likeness::different &&
         (there == Likeness::same || back == Likeness::same);
}

bool Connection::meet() {
  if (stage_of(place_.peer()) < Stage::present || stage_of(place_.peer()) == Stage::gone) return false;
  if (!mirrors_peer()) {
    give_up(Reason::other_conversation);
    return false;
  }
  Device* const nic = device();
  link_ = nic != nullptr ? nic->make_link() : nullptr;
  if (!link_) {
    give_up(Reason::device);
    return false;
  }
  place_.mine().offer = link_->offer();
  set_stage(place_.mine(), Stage::offered);
  step_ = Step::connect;
  return true;
}

bool Connection::connect_link() {
  if (stage_of(place_.peer()) < Stage::offered || stage_of(place_.peer()) == Stage::gone) return false;
  const Offer offer = place_.peer().offer;
  constexpr std::uint32_t least = 4096, most = 1 << 24;
  if (!std::has_single_bit(offer.ring_bytes) || offer.ring_bytes < least || offer.ring_bytes > most ||
      !link_->connect(offer)) {
    give_up(Reason::device);
    return false;
  }
  peer_ring_bytes_ = offer.ring_bytes;
  set_stage(place_.mine(), Stage::linked);
  step_ = Step::wait_for_peer;
  return true;
}

void Connection::agree(std::uint32_t service) {
  const std::scoped_lock lock(agreement_);
  bool moved = false;
  if (closed_.load()) return;
  if (step_ == Step::claim) moved = claim(service);
  if (step_ == Step::meet) moved |= meet();
  if (step_ == Step::connect) moved |= connect_link();
  if (step_ == Step::wait_for_peer && stage_of(place_.peer()) == Stage::linked) {
    step_ = Step::over;
    if (link_->reaches_peer())
      life_.store(Life::ready, std::memory_order_release);
    else
      give_up(Reason::device);
  }
  if (moved && has_place_) ring(*table(), place_.peer().service.load());
}

void Connection::give_up(Reason why) {
  std::uint32_t none = 0;
  record_->stays.compare_exchange_strong(none, static_cast<std::uint32_t>(why));
  trace("descriptor %d %s: it stays on TCP", fd_.load(), text(why));
  step_ = Step::over;
  if (!has_place_) return;
  place_.mine().why_not.store(static_cast<std::uint32_t>(why));
}

void Connection::reconsider() {
  const std::scoped_lock lock(agreement_);
  if (step_ == Step::meet && std::chrono::steady_clock::now() - since_ > longest_search)
    give_up(Reason::no_peer);
}

void Connection::answer_leaving_peer() {
  if (!engaged() || foreign_ || closed_.load() ||
      static_cast<Want>(place_.peer().receiver.wants_tcp.load()) != Want::unread_back ||
      !outgoing().can_hand_back())
    return;
  users_.fetch_add(1);
  const int fd = fd_.load();
  Gate gate(record_->send_gate);
  if (!closed_.load() && fd >= 0 && gate.exclusive() && outgoing().can_hand_back() && !hand_back(fd))
    reset(fd);
  users_.fetch_sub(1);
}

void Connection::end() {
  const std::scoped_lock lock(agreement_);
  if (foreign_)
    (void)link_.release();
  else
    link_.reset();
  if (has_place_ && !foreign_) table()->release(place_);
  has_place_ = false;
}

}  // namespace weir::sockets
