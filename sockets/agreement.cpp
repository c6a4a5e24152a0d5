// How two ends on one host find each other in the table and connect their queue pairs. Runs in the service
// thread, except renew() and become_childs().
//
// claim: announce this end. meet: the peer is present and has seen the same bytes; create a queue pair and
// offer it. connect: the peer has made its offer; connect our queue pair to it. wait_for_peer: the peer has
// connected too; test that it can be written to, so that the program's first write need not find out. Each
// step stores a stage and rings the peer's service. No step blocks, so a stopped peer holds nobody up.
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "sockets/connection.hpp"
#include "sockets/runtime.hpp"
#include "sockets/settings.hpp"

namespace weir::sockets {
namespace {

constexpr std::chrono::seconds longest_search{2};
constexpr std::chrono::milliseconds max_silence{1500};  // of a peer's NIC, before it is asked for TCP

Stage stage_of(const Side& side) { return static_cast<Stage>(side.stage.load()); }
void set_stage(Side& side, Stage stage) { side.stage.store(static_cast<std::uint32_t>(stage)); }

template <class T>
void make_anew(T& object) {
  new (&object) T;
}

}  // namespace

void Connection::renew(Record& record, bool accepted) {
  record_ = &record;
  accepted_ = accepted;
  far_ = false;
  words_.reset();
  send_blocked_.store(false);
  calls_.store(0);
  closed_.store(false);
  fd_.store(-1);
  foreign_ = false;
  return_.state.store(Return::none);
  copies_ = 1;
  held_.clear();
  pending_error_ = 0;
  lost_ = false;
  since_change_ = 0;
  after_full_ = {};
  step_ = Step::claim;
  has_place_ = false;
  peer_ring_bytes_ = 0;
  in_sets_.registrations.clear();
  in_sets_.removed_members.store(0);
  in_sets_.kernel_events.renew();
  in_sets_.lacks_room.store(false);
  life_.store(Life::observed);
}

void Connection::become_childs() {
  make_anew(agreement_);  // another thread of the parent may have held the mutexes
  make_anew(in_sets_.mutex);
  users_.store(0);
  if (life() == Life::unused) return;
  if (engaged()) {
    foreign_ = true;
    if (far_) keep_words();
    return;
  }
  calls_.store(0);
  (void)link_.release();  // it belongs to the parent
  has_place_ = false;
  step_ = Step::claim;
  life_.store(Life::observed);
}

// The parent may free its place in the table at any time, so the child copies the words. They are final.
void Connection::keep_words() {
  const Side& mine = place_.mine();
  const Side& peer = place_.peer();
  lost_ = lost_ || stays() == Reason::none || gets_by_ring() || sends_by_ring() || !link_->settled();
  auto words = std::make_unique<Entry>();
  for (const auto* side : {&mine, &peer}) {
    Side& copy = words->sides[side == &mine ? 0 : 1];
    copy.stage.store(side->stage.load());
    copy.sender.produced.store(side->sender.produced.load());
    copy.sender.changes.store(side->sender.changes.load());
    copy.sender.ring_from.store(side->sender.ring_from.load());
    copy.sender.tcp_from.store(side->sender.tcp_from.load());
    copy.receiver.consumed.store(side->receiver.consumed.load());
    copy.receiver.changes_seen.store(side->receiver.changes_seen.load());
  }
  words_ = std::move(words);
  place_ = {words_.get(), 0};
}

bool Connection::claim(std::uint32_t service) {
  if (table()->is_put_back()) {
    give_up(Reason::operator_said);
    return false;
  }
  const auto place = table()->claim(ends_.key, ends_.lower);
  if (!place) {
    give_up(Reason::table);
    return false;
  }
  place_ = *place;
  has_place_ = true;
  Side& mine = place_.mine();
  const Conversation now = conversation({});
  mine.sent = now.sent;
  mine.received = now.received;
  mine.service.store(service);
  std::strncpy(mine.program.data(), program_invocation_short_name, mine.program.size() - 1);
  if (far_) table()->take_mirror(place_);
  set_stage(mine, Stage::present);
  step_ = far_ ? Step::far : Step::meet;
  return true;
}

Conversation Connection::conversation(hash::SipKey key) const {
  const auto& end = record_->end;
  return {.sent = sent_first_.beginning(key, end.sent.load()),
          .received = received_first_.beginning(key, end.received.load())};
}

bool Connection::mirrors_peer() const {
  const Side& mine = place_.mine();
  const Side& peer = place_.peer();
  return mirror({mine.sent, mine.received}, {peer.sent, peer.received}) == Likeness::same;
}

bool Connection::meet() {
  if (stage_of(place_.peer()) < Stage::present || stage_of(place_.peer()) == Stage::gone) return false;
  if (!mirrors_peer()) {
    give_up(Reason::other_conversation);
    return false;
  }
  Device* const nic = device();
  auto made = nic != nullptr ? nic->make_link() : nullptr;
  if (!made) {
    give_up(Reason::device);
    return false;
  }
  place_.mine().offer = made->offer();
  near_link_ = made.get();
  link_ = std::move(made);
  set_stage(place_.mine(), Stage::offered);
  step_ = Step::connect;
  return true;
}

bool Connection::connect_link() {
  if (stage_of(place_.peer()) < Stage::offered || stage_of(place_.peer()) == Stage::gone) return false;
  const Offer offer = place_.peer().offer;
  constexpr std::uint32_t least = 4096, most = 1 << 24;
  if (!std::has_single_bit(offer.ring_bytes) || offer.ring_bytes < least || offer.ring_bytes > most ||
      !near_link_->connect(offer)) {
    give_up(Reason::device);
    return false;
  }
  peer_ring_bytes_ = offer.ring_bytes;
  set_stage(place_.mine(), Stage::linked);
  step_ = Step::wait_for_peer;
  return true;
}

bool Connection::agree(std::uint32_t service) {
  const std::scoped_lock lock(agreement_);
  bool moved = false;
  if (closed_.load()) return false;
  if (step_ == Step::claim) moved = claim(service);
  if (step_ == Step::meet) moved |= meet();
  if (step_ == Step::connect) moved |= connect_link();
  if (step_ == Step::wait_for_peer && stage_of(place_.peer()) == Stage::linked) {
    step_ = Step::over;
    if (near_link_->reaches_peer())
      life_.store(Life::ready, std::memory_order_release);
    else
      give_up(Reason::device);
  }
  if (moved && has_place_ && !far_) ring(*table(), place_.peer().service.load());
  return moved && step_ == Step::far;
}

void Connection::give_up(Reason why) {
  std::uint32_t none = 0;
  record_->stays.compare_exchange_strong(none, static_cast<std::uint32_t>(why));
  trace("descriptor %d %s: it stays on TCP", fd_.load(), text(why));
  step_ = Step::over;
  if (!has_place_) return;
  place_.mine().why_not.store(static_cast<std::uint32_t>(why));
}

void Connection::far_linked(std::unique_ptr<Link> link, std::uint64_t peer_ring_bytes) {
  const std::scoped_lock lock(agreement_);
  link_ = std::move(link);
  peer_ring_bytes_ = peer_ring_bytes;
  set_stage(place_.peer(), Stage::linked);
  set_stage(place_.mine(), Stage::linked);
  step_ = Step::over;
  if (!closed_.load()) life_.store(Life::ready, std::memory_order_release);
}

void Connection::far_failed(Reason why) {
  const std::scoped_lock lock(agreement_);
  give_up(why);
}

void Connection::reconsider() {
  const std::scoped_lock lock(agreement_);
  if (step_ == Step::meet && std::chrono::steady_clock::now() - since_ > longest_search)
    give_up(Reason::no_peer);
}

void Connection::list_reason() {
  const std::scoped_lock lock(agreement_);
  if (has_place_ && !foreign_) place_.mine().why_not.store(record_->stays.load());
}

void Connection::answer_leaving_peer() {
  if (!engaged() || foreign_ || closed_.load()) return;
  const auto want = static_cast<Want>(place_.peer().receiver.wants_tcp.load());
  if (far_ && want == Want::tcp && sends_by_ring()) return leave_as_asked();
  if (want != Want::unread_back || !outgoing().can_hand_back()) return;
  users_.fetch_add(1);
  const int fd = fd_.load();
  Gate gate(record_->send_gate);
  if (!closed_.load() && fd >= 0 && gate.exclusive() && outgoing().can_hand_back() && !hand_back(fd))
    reset(fd);
  users_.fetch_sub(1);
}

bool Connection::watch_path() {
  if (!engaged() || !far_ || off_link() || closed_.load() || link_->lost()) return false;
  users_.fetch_add(1);
  const auto silence = link_->unanswered();
  if (silence >= max_silence && return_.state.load() == Return::none) {
    const int fd = fd_.load();
    Gate sends(record_->send_gate), receives(record_->receive_gate);
    if (!closed_.load() && fd >= 0 && sends.exclusive() && receives.exclusive() &&
        return_.state.load() == Return::none && !link_->lost())
      ask_return(fd);
  }
  users_.fetch_sub(1);
  return silence > std::chrono::nanoseconds(0) && return_.state.load() == Return::none;
}

// A peer on another host asked us to leave the ring and may wait for that, as before a fork().
void Connection::leave_as_asked() {
  users_.fetch_add(1);
  {
    Gate gate(record_->send_gate);
    if (!closed_.load() && gate.exclusive()) {
      outgoing().leave_ring();
      link_->tell();
    }
  }
  users_.fetch_sub(1);
}

void Connection::end() {
  const std::scoped_lock lock(agreement_);
  if (foreign_)
    (void)link_.release();
  else
    link_.reset();
  near_link_ = nullptr;
  if (has_place_ && far_ && !foreign_) set_stage(place_.peer(), Stage::gone);
  if (has_place_ && !foreign_) table()->release(place_);
  has_place_ = false;
}

}  // namespace weir::sockets
