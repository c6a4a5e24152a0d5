#include "rnic/adapter.hpp"

#include <algorithm>
#include <bit>

#include "rnic/between_hosts/packet_path.hpp"
#include "rnic/queue_pair/completion_signal.hpp"
#include "rnic/same_host/guest_operations.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {

Adapter::Adapter(Slot slot, Segment& segment, TptEntry* table, HostPort& host)
    : slot_(slot),
      segment_(segment),
      table_(table),
      host_(host),
      windows_(table_, segment),
      multicast_(segment),
      steering_(segment),
      departures_(host),
      packet_arrivals_(host) {}

void Adapter::begin_numbers_at(std::uint64_t secret) {
  table_.begin_with(secret);
  numbers_.begin(secret);
}

QueuePair* Adapter::create_qp(const QpConfig& config) {
  const std::lock_guard lock(mutex_);
  if (qps_.empty()) qps_.resize(max_qps);
  const auto index = numbers_.next(live_qps_.size(), [&](std::uint32_t wanted) {
    return qps_[wanted] || stopped_initiator_inside(wanted) || Qpn(slot_, wanted) == multicast_destination;
  });
  if (!index) return nullptr;
  auto qp = std::make_unique<QueuePair>(*this, *index, config);
  if (!qp->valid()) return nullptr;
  show_counters(*index);
  live_qps_.push_back(qp.get());
  return (qps_[*index] = std::move(qp)).get();
}

CompletionQueue* Adapter::create_cq(std::uint32_t cqe, std::uint32_t channel) {
  const std::lock_guard lock(mutex_);
  std::uint32_t index = 0;
  while (index < cqs_.size() && cqs_[index]) ++index;
  if (index >= max_cqs) return nullptr;
  if (index == cqs_.size()) cqs_.emplace_back();
  cqs_[index] = std::make_unique<CompletionQueue>(*this, index, cqe, channel);
  return cqs_[index].get();
}

SharedReceiveQueue* Adapter::create_srq(std::uint32_t pd, std::uint32_t wrs, std::uint32_t sges,
                                        const XrcConfig& xrc) {
  const std::lock_guard lock(mutex_);
  std::uint32_t index = 0;
  while (index < srqs_.size() && srqs_[index]) ++index;
  if (index >= max_srqs) return nullptr;
  if (index == srqs_.size()) srqs_.emplace_back();
  auto srq = std::make_unique<SharedReceiveQueue>(segment_, Qpn(slot_, index), pd, wrs, sges, xrc);
  if (!srq->valid()) return nullptr;
  if (srq->completions() != nullptr) srq->open(xrc.cq->index(), xrc.cq->attach(srq.get()));
  srqs_[index] = std::move(srq);
  return srqs_[index].get();
}

void Adapter::destroy(QueuePair* qp) {
  if (qp->is_anothers()) return close_opened(qp);
  {
    const std::lock_guard lock(mutex_);
    if (qp->stays_open()) {
      qp->set_cookie(nullptr);
      kept_.push_back(qp);
      return;
    }
    qp->shut();
  }
  qp->wait_after_shut();  // not under mutex_, as in drain_initiators()
  const std::lock_guard lock(mutex_);
  destroy_locked(qp);
}

// `qp` has been shut.
void Adapter::destroy_locked(QueuePair* qp) {
  std::erase(live_qps_, qp);
  const std::uint32_t index = qp->qpn().index();
  const auto inside = [&] { return segment_.header().qps[index].hazard.load(std::memory_order_acquire) & 1; };
  LeftInside left{qp->initiator_slot(), std::nullopt};
  if (inside()) left.receive_keys = qp->receive_keys();
  qps_[index].reset();
  if (inside()) left_inside_[index] = std::move(left);
  retire_counters(index);
}

// Under mutex_. Such a number is not reused before its initiator has left or ended. Otherwise the initiator
// would later end its operation in the context of whatever queue pair has that number then.
bool Adapter::stopped_initiator_inside(std::uint32_t qp_index) {
  const auto left = left_inside_.find(qp_index);
  if (left == left_inside_.end()) return false;
  const bool inside = segment_.header().qps[qp_index].hazard.load(std::memory_order_acquire) & 1;
  if (inside && host_.peer(left->second.initiator, HostPort::Wait::no)) return true;
  left_inside_.erase(left);
  return false;
}

// Call with mutex_ held, as the next one. release: a reader that finds the queue pair sees cleared counters.
void Adapter::show_counters(std::uint32_t index) {
  SegmentHeader& header = segment_.header();
  header.qp_counters[index].for_each([](Counter& counter) { counter.clear(); });
  header.qp_exists[index].store(1, std::memory_order_release);
  if (index >= header.counters.qps_end.load(std::memory_order_relaxed))
    header.counters.qps_end.store(index + 1, std::memory_order_release);
}

// The process's sums cover its queue pairs and those destroyed, and no queue pair twice.
void Adapter::retire_counters(std::uint32_t index) {
  SegmentHeader& header = segment_.header();
  header.counters.moving.fetch_add(1, std::memory_order_acq_rel);
  std::vector<Counter*> sums;
  header.counters.retired.for_each([&](Counter& sum) { sums.push_back(&sum); });
  std::size_t next = 0;
  header.qp_counters[index].for_each([&](Counter& counter) { sums[next++]->shared_add(counter.read()); });
  header.qp_exists[index].store(0, std::memory_order_release);
  header.counters.moving.fetch_add(1, std::memory_order_acq_rel);
}

void Adapter::destroy(CompletionQueue* cq) {
  const std::lock_guard lock(mutex_);
  cqs_[cq->index()].reset();
}

void Adapter::destroy(SharedReceiveQueue* srq) {
  srq->close();
  // Initiators leave an SRQ with their queue pairs; only those of an XRC SRQ do not.
  if (srq->completions() != nullptr && !wait_for_initiators()) srq->keep_rings();
  const std::lock_guard lock(mutex_);
  if (srq->completions() != nullptr) srq->cq()->detach(srq->cq_line());
  srqs_[srq->index()].reset();
}

CompletionQueue* Adapter::cq(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  return index < cqs_.size() ? cqs_[index].get() : nullptr;
}

template <class Visit>
void Adapter::for_each_qp(Visit visit) {
  const std::lock_guard lock(mutex_);
  for (QueuePair* qp : live_qps_) visit(*qp);
}

void Adapter::deregister(std::uint32_t key) {
  table_.invalidate(key);
  drain_initiators(key);
  table_.release(key);
}

void Adapter::release_window(std::uint32_t key) {
  windows_.forget_window(key);
  drain_initiators(key);
  table_.release_window(key);
}

bool Adapter::wait_for_initiators() const {
  bool left = true;
  numbers_.for_each_used([&](std::uint32_t index) {
    const QpContext& qp = segment_.header().qps[index];
    const std::uint32_t seen = qp.hazard.load(std::memory_order_seq_cst);
    if ((seen & 1) == 0) return;
    const std::uint64_t give_up_ns = host_.now_ns() + longest_operation_ns;
    for (int tries = 0; qp.hazard.load(std::memory_order_seq_cst) == seen; ++tries) {
      if (tries < 100) {
        cpu_relax();
        continue;
      }
      const std::uint32_t remote = qp.remote_qpn.load(std::memory_order_acquire);
      const Qpn initiator(remote);
      const bool neighbours = remote != 0 && (remote & over_packets) == 0;
      if (neighbours && !host_.peer(initiator.slot(), HostPort::Wait::no)) break;  // killed within one
      if (host_.now_ns() >= give_up_ns) {
        left = false;
        break;
      }
      sched_yield();
    }
  });
  return wait_for_guests(segment_.header(), host_, host_.now_ns() + longest_operation_ns) && left;
}

// A running operation on one of our queue pairs, and its initiator.
struct Adapter::Running {
  std::uint32_t index, at;
  Slot initiator;
};

std::vector<Adapter::Running> Adapter::running_operations() {
  std::vector<Running> running;
  const auto note = [&](std::uint32_t index, Slot initiator) {
    const std::uint32_t at = segment_.header().qps[index].hazard.load(std::memory_order_seq_cst);
    if (at & 1) running.push_back({index, at, initiator});
  };
  const std::lock_guard lock(mutex_);
  for (const QueuePair* qp : live_qps_)  // a datagram's sender reaches no region: our own poll copies
    if (!has_many_senders(qp->config().type)) note(qp->qpn().index(), qp->initiator_slot());
  for (const auto& [index, left] : left_inside_) note(index, left.initiator);
  return running;
}

bool Adapter::may_reach(const Running& one, std::uint32_t key) {
  const std::uint32_t reaches = segment_.header().qps[one.index].reaches.load(std::memory_order_acquire);
  // Compares indices, because a type 2 window changes the rest of its key. A window reaches the memory of its
  // region, which has another key.
  if (reaches != any_receive) return reaches >> 8 == key >> 8 || windows_.lies_in(reaches, key);
  const std::lock_guard lock(mutex_);
  std::optional<std::vector<std::uint32_t>> keys;
  if (const auto left = left_inside_.find(one.index); left != left_inside_.end())
    keys = left->second.receive_keys;
  else if (qps_[one.index])
    keys = qps_[one.index]->receive_keys();
  return !keys || std::ranges::find(*keys, key) != keys->end();
}

// Waits without limit, but only for operations that may use that key. If we returned early, a late
// write would land in memory that the caller has given away. A process that is stopped in some other
// operation does not matter. Not under mutex_: all that comes from outside needs it, including the news
// that an initiator was killed.
void Adapter::drain_initiators(std::uint32_t key) {
  constexpr int spins = 100, look_again = 1024;
  std::vector<Running> running = running_operations();
  for (int tries = 0; !running.empty(); ++tries) {
    std::erase_if(running, [&](const Running& one) {
      return segment_.header().qps[one.index].hazard.load(std::memory_order_seq_cst) != one.at;
    });
    if (tries < spins) {
      cpu_relax();
      continue;
    }
    std::erase_if(running, [&](const Running& one) {
      if (tries % look_again == spins && !may_reach(one, key)) return true;
      return !host_.peer(one.initiator, HostPort::Wait::no);  // killed inside an operation
    });
    sched_yield();
  }
  while (!wait_for_guests(segment_.header(), host_, host_.now_ns() + longest_operation_ns)) {
  }
}

void Adapter::kicked(Qpn own) {
  if (own.value() == 0) return service();
  const std::lock_guard lock(mutex_);
  if (qps_.empty() || !qps_[own.index()]) return;
  qps_[own.index()]->resume();
}

void Adapter::faulted(Qpn number, Fault fault) {
  const std::lock_guard lock(mutex_);
  QueuePair* const qp = find_qp(number);
  if (qp == nullptr) return;
  qp->on_fault(fault);
  qp->report_fault_to_openers(fault);
}

bool Adapter::break_down(Qpn own) {
  const std::lock_guard lock(mutex_);
  QueuePair* const qp = own.slot() == slot_ ? find_qp(own) : nullptr;
  if (qp == nullptr || qp->state() == QpState::err) return false;
  to_error_state(segment_.header().qps[own.index()]);
  if (qp->state() != QpState::err) return false;
  qp->on_fault(Fault::operational);
  return true;
}

void Adapter::withhold_receives(Qpn own, std::uint32_t from) {
  const std::lock_guard lock(mutex_);
  const QueuePair* const qp = own.slot() == slot_ ? find_qp(own) : nullptr;
  if (qp == nullptr) return;
  // seq_cst, as a receive that is posted: the initiator says that it waits, then looks again.
  segment_.header().qps[own.index()].withheld_from.store(from, std::memory_order_seq_cst);
  qp->kick_initiator_if_parked();
}

// Under mutex_. Finds a queue pair of ours or one that we have open.
QueuePair* Adapter::find_qp(Qpn number) const {
  if (number.slot() == slot_) return qps_.empty() ? nullptr : qps_[number.index()].get();
  const auto found = std::ranges::find_if(opened_, [number](const auto& qp) { return qp->qpn() == number; });
  return found != opened_.end() ? found->get() : nullptr;
}

void Adapter::srq_limit(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  if (index < srqs_.size() && srqs_[index])
    host_.async_event(AsyncEvent::srq_limit_reached, nullptr, srqs_[index].get());
}

void Adapter::raise_cq(std::uint32_t index) {
  if (index >= max_cqs) return;
  const std::uint32_t channel = segment_.header().cqs[index].channel.load(std::memory_order_relaxed);
  if (channel != 0) host_.raise_channel(channel);
}

void Adapter::peer_gone(Slot slot) {
  for_each_qp([&](QueuePair& qp) {
    qp.peer_gone(slot);
    qp.forget_opener(slot);
  });
  notify_openers_of_end(slot);
  queue_pair_closed();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(left_inside_, [&](const auto& left) {
      if (left.second.initiator != slot) return false;
      // Make the hazard even, or a waiter would wait for the next process in this slot.
      std::atomic<std::uint32_t>& hazard = segment_.header().qps[left.first].hazard;
      hazard.store((hazard.load(std::memory_order_relaxed) | 1) + 1, std::memory_order_seq_cst);
      return true;
    });
  }
  evict_guests(segment_.header(), slot);
  reclaim_from_srqs(slot);
  service();  // XRC: retry what waits for an SRQ of that process
}

void Adapter::process_gone(std::uint64_t process) {
  for_each_qp([&](QueuePair& qp) { qp.process_gone(process); });
}

void Adapter::hurry() {
  if (modes_.weak == nullptr) return;
  for_each_qp([](QueuePair& qp) { qp.hurry(); });
}

void Adapter::finish_packets() {
  for_each_qp([](QueuePair& qp) { qp.finish_packets(); });
  departures_.leave_all();
}

// Receives that a killed process had taken from our SRQs and not completed go back to them.
void Adapter::reclaim_from_srqs(Slot dead) {
  const std::lock_guard lock(mutex_);
  for (const auto& srq : srqs_) {
    if (!srq) continue;
    if (XrcCompletions* xrc = srq->completions()) {
      xrc->void_slots_of(dead);
      announce_unpolled(*srq);
    }
    srq->reclaim(dead, completed_of(*srq));
    if (srq->take_parked()) kick_locked(*srq);
  }
}

// If there is something to poll, wakes the sleeper on an XRC SRQ's CQ: the writer may
// have died before it could.
void Adapter::announce_unpolled(const SharedReceiveQueue& srq) {
  CompletionQueue& cq = *srq.cq();
  {
    const std::lock_guard lock(cq.poll_lock());
    if (srq.completions()->next() == nullptr) return;  // next() also skips void slots
  }
  mark_ready(cq.context(), srq.cq_line());
  if (take_armed(cq.context(), Solicited::yes)) raise_cq(cq.index());
}

void Adapter::receive_returned(Slot from, const Peer::TakenFrom& taken) {
  const std::lock_guard lock(mutex_);
  if (taken.srq_index >= srqs_.size() || !srqs_[taken.srq_index]) return;
  SharedReceiveQueue& srq = *srqs_[taken.srq_index];
  if (srq.context().incarnation != taken.incarnation) return;
  srq.give_back(from, taken.wqe, completed_of(srq));
  if (srq.take_parked()) kick_locked(srq);
}

// Under mutex_: the SRQ's WQEs whose completions are published but not yet polled.
std::vector<std::uint32_t> Adapter::completed_of(const SharedReceiveQueue& srq) const {
  std::vector<std::uint32_t> completed;
  if (const XrcCompletions* xrc = srq.completions()) xrc->append_completed(completed);
  for (const QueuePair* qp : live_qps_)
    if (qp->config().srq == &srq) qp->append_completed(completed);
  return completed;
}

void Adapter::kick_all_parked_on(SharedReceiveQueue& srq) {
  const std::lock_guard lock(mutex_);
  kick_locked(srq);
}

void Adapter::kick_locked(SharedReceiveQueue& srq) {
  for (QueuePair* qp : live_qps_) {
    const bool fed = qp->config().srq == &srq || (srq.xrcd() != 0 && qp->config().xrcd == srq.xrcd());
    if (fed) qp->kick_initiator_if_parked();
  }
  if (srq.xrcd() != 0) kick_guests(srq);
}

// For initiators that came by another process's queue pair: retries all that their processes have parked.
void Adapter::kick_guests(SharedReceiveQueue& srq) {
  for (std::uint32_t word = 0; word < max_slots / 64; ++word) {
    std::uint64_t slots = srq.context().parked_slots[word].exchange(0, std::memory_order_seq_cst);
    for (; slots != 0; slots &= slots - 1) {
      const auto slot = static_cast<Slot>(word * 64 + static_cast<std::uint32_t>(std::countr_zero(slots)));
      if (const PeerPtr peer = host_.peer(slot, HostPort::Wait::no)) peer->kick(Qpn());
    }
  }
}

void Adapter::quiesce(Peer& peer) {
  for_each_qp([&](QueuePair& qp) {
    if (qp.connected_to(peer)) qp.quiesce();
  });
}

// ---- parked queue pairs

// Holds mutex_ so that no queue pair is destroyed meanwhile. A poller that cannot get it at once leaves the
// work to the holder, or to its own next poll.
void Adapter::resume_parked(Patience patience) {
  if (!parked_.any()) return;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (patience == Patience::wait)
    lock.lock();
  else if (!lock.try_lock())
    return;
  resume_all_parked();
}

void Adapter::resume_all_parked() {
  for (QueuePair* qp : parked_.take())
    if (qp->resume()) note_parked(*qp);
}

// ---- packets

// Takes mutex_, as resume_parked() does.
bool Adapter::receive_packets(Patience patience) {
  std::optional<DepartureStage::Round> answers;  // they leave when the lock is free again
  std::unique_lock lock(mutex_, std::defer_lock);
  if (patience == Patience::wait)
    lock.lock();
  else if (!lock.try_lock())
    return false;
  host_.receive_packets([&](std::span<const PacketDatagram> datagrams) {
    if (datagrams.empty()) return;
    if (!answers) answers.emplace(departures_.shared_here());
    take_batch(datagrams);
  });
  const bool came = answers.has_value();
  if (!came && packet_deadlines_.any_due(host_.now_ns())) answers.emplace(departures_.shared_here());
  resume_due();
  return came;
}

void Adapter::resume_at(std::uint64_t deadline_ns, const QueuePair& qp) {
  packet_deadlines_.add(deadline_ns, qp.qpn().index());
  host_.wake_at(deadline_ns);
}

// Silence is judged after a look at what has arrived: for a while this process may have had no processor.
void Adapter::resume_due() {
  const std::uint64_t now_ns = host_.now_ns();
  while (const auto index = packet_deadlines_.take_due(now_ns)) {
    QueuePair* const qp = qps_[*index].get();
    if (qp == nullptr) continue;
    (void)qp->resume();
    if (const auto window = qp->packet_window()) give_turns(*window);
  }
}

// Those in line for it send, one after another, until it is closed or nobody waits.
void Adapter::give_turns(SharedWindow& window) {
  while (window.open()) {
    QueuePair* const first = window.line.next();
    if (first == nullptr) return;
    first->take_turn();
  }
}

void Adapter::take_packets(std::span<const PacketDatagram> datagrams) {
  const DepartureStage::Round answers(departures_.shared_here());
  const std::lock_guard lock(mutex_);
  take_batch(datagrams);
}

bool Adapter::has_armed_cq() {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(cqs_, [](const auto& cq) { return cq != nullptr && cq->is_armed(); });
}

// Traces our own packets, not those that are passed on to another process.
void Adapter::trace(std::span<const PacketDatagram> datagrams) {
  std::vector<WirePacket> came;
  for (const PacketDatagram& each : datagrams) {
    const Qpn to(wire::destination_of(each.bytes));
    if (to.value() > 1 && to.slot() != slot_ && to != multicast_destination) continue;
    came.push_back({.bytes = each.bytes,
                    .source = each.source,
                    .destination = each.destination,
                    .source_port = each.source_port,
                    .likely_id = each.likely_id,
                    .traffic_class = each.traffic_class,
                    .hop_limit = each.hop_limit,
                    .own = to});
  }
  if (!came.empty()) modes_.tracer->on_wire(came);
}

void Adapter::take_batch(std::span<const PacketDatagram> datagrams) {
  answering_.clear();
  if (modes_.tracer != nullptr) trace(datagrams);
  for (const PacketDatagram& datagram : datagrams) take_packet(datagram);
  for (QueuePair* qp : answering_) qp->answer_packets();
  // An answer to one queue pair may open the window for another: they share the one of their destination.
  for (QueuePair* qp : answering_)
    if (const auto window = qp->packet_window()) give_turns(*window);
}

namespace {

ArrivedPacket arrived_as(const PacketDatagram& datagram, const wire::Packet& packet) {
  return {.source = datagram.source,
          .destination = datagram.destination,
          .interface = datagram.interface,
          .traffic_class = datagram.traffic_class,
          .hop_limit = datagram.hop_limit,
          .process = datagram.process,
          .slot = datagram.slot,
          .packet = packet};
}

}  // namespace

// Delivers a copy to each attached queue pair of ours. Each process that joined the group gets its own copy,
// from the kernel or from another user's process, so none is passed on.
void Adapter::take_multicast(const PacketDatagram& datagram, const wire::Packet& packet) {
  attached_.clear();
  multicast_.append_attached(datagram.destination, attached_);
  for (const std::uint32_t index : attached_)
    if (QueuePair* const qp = qps_[index].get(); qp != nullptr && qp->config().type == QpType::ud)
      qp->receive_packet(arrived_as(datagram, packet));
}

// The destination and the source decide before the ICRC is looked at. Strangers compute that as well as peers
// do, so that it says nothing about them, and it costs more than all the rest. A keyed one does say
// something: it comes before what the host allows strangers, so that forged packets do not use that up.
std::optional<Dropped> Adapter::refusal_of(const PacketDatagram& datagram, const wire::Packet& packet) {
  const Qpn to(packet.bth.destination);
  // Each implies the other (IBA 9.4.1): a group's address never leads to one queue pair, nor another to all.
  if (is_group(datagram.destination) != (to == multicast_destination)) return Dropped::malformed;
  if (to == multicast_destination) return std::nullopt;
  if (to.value() == 0) return Dropped::no_queue_pair;
  const bool is_for_host = to.value() == 1 || to.slot() != slot_;
  if (is_for_host && host_.wire_key() != nullptr && !packet_arrivals_.is_intact(datagram))
    return Dropped::wrong_key;
  if (to.value() == 1) return host_.refuse_management(datagram, packet);
  if (to.slot() != slot_) {
    // Packets of another user's process may only be for us, or for a group that we are in.
    return datagram.process != 0 ? Dropped::no_process : host_.refuse_passing_on(to.slot(), datagram);
  }
  QueuePair* const qp = qps_.empty() ? nullptr : qps_[to.index()].get();
  return qp == nullptr ? Dropped::no_queue_pair : qp->refusal_of(arrived_as(datagram, packet));
}

void Adapter::take_packet(const PacketDatagram& datagram) {
  const auto packet = PacketArrivals::parse(datagram);
  auto refused = packet ? refusal_of(datagram, *packet) : Dropped::malformed;
  if (!refused && !packet_arrivals_.is_intact(datagram))
    refused = host_.wire_key() != nullptr ? Dropped::wrong_key : Dropped::wrong_icrc;
  if (refused) return segment_.header().counters.count_drop(*refused);
  const Qpn to(packet->bth.destination);
  if (to == multicast_destination) return take_multicast(datagram, *packet);
  if (to.value() == 1) return host_.receive_management(datagram, *packet);
  if (to.slot() != slot_) return host_.pass_on(to.slot(), datagram);
  QueuePair* const qp = qps_[to.index()].get();
  qp->receive_packet(arrived_as(datagram, *packet));
  if (!is_reliable(qp->config().type)) return;  // other types send no answers
  const bool known = !answering_.empty() &&
                     (answering_.back() == qp || std::ranges::find(answering_, qp) != answering_.end());
  if (!known) answering_.push_back(qp);
}

void Adapter::service() {
  departures_.leave_overdue();
  resume_parked(Patience::wait);
  if (packet_deadlines_.any_due(host_.now_ns())) receive_packets(Patience::wait);
  const std::lock_guard lock(mutex_);
  for (const auto& window : packet_windows_.all()) give_turns(*window);
}

}  // namespace weir::rnic
