#include "nic_host.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "rnic/memory/copy.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::size_t test_segment_bytes = 512ull << 20;  // virtual; far more than any test touches

std::byte* map_zeros(std::size_t bytes) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(memory);
}

bool copy(std::span<const iovec> from, std::span<const iovec> to) {
  std::vector<std::byte> bytes;
  for (const iovec& piece : from) {
    const auto* data = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), data, data + piece.iov_len);
  }
  std::size_t done = 0;
  for (const iovec& piece : to) {
    const std::size_t length = std::min(piece.iov_len, bytes.size() - done);
    if (length != 0) std::memcpy(piece.iov_base, bytes.data() + done, length);
    done += length;
  }
  return done == bytes.size();
}

}  // namespace

// A process as another one (or itself) sees it.
class MemoryPeer final : public Peer {
 public:
  MemoryPeer(Host& host, Nic& target, Slot from) : host_(host), from_(from) {
    slot_ = target.slot_;
    segment_ = reinterpret_cast<SegmentHeader*>(target.segment_memory_);
    segment_size_ = test_segment_bytes;
    tpt_ = reinterpret_cast<const TptEntry*>(target.table_memory_);
  }
  void died() { alive_.store(false, std::memory_order_release); }

  std::byte* window(const TptEntry& entry, std::uint64_t addr, std::uint64_t) override {
    if (entry.window == 0) return nullptr;
    return static_cast<std::byte*>(ProtectionTable::address(entry, addr));
  }
  Transfer write(std::span<const iovec> local, const Remote& remote) override {
    return transfer(local, remote.pieces);
  }
  Transfer read(std::span<const iovec> local, const Remote& remote) override {
    return transfer(remote.pieces, local);
  }
  void kick(Qpn parked) override {
    deliver([parked](Nic& nic) { nic.adapter().kicked(parked); });
  }
  void raise_cq_event(std::uint32_t cq_index) override {
    deliver([cq_index](Nic& nic) { nic.adapter().raise_cq(cq_index); });
  }
  void report_fault(Qpn theirs, Fault fault) override {
    deliver([theirs, fault](Nic& nic) { nic.adapter().faulted(theirs, fault); });
  }
  void report_srq_limit(std::uint32_t srq_index) override {
    deliver([srq_index](Nic& nic) { nic.adapter().srq_limit(srq_index); });
  }
  void report_withheld(Qpn theirs, std::uint32_t message) override {
    deliver([theirs, message](Nic& nic) { nic.adapter().host().receive_withheld(theirs, message); });
  }
  void report_closed(Qpn) override {
    deliver([](Nic& nic) { nic.adapter().queue_pair_closed(); });
  }
  void return_receive(const TakenFrom& taken) override {
    deliver([from = from_, taken](Nic& nic) { nic.adapter().receive_returned(from, taken); });
  }

 private:
  Transfer transfer(std::span<const iovec> from, std::span<const iovec> to) {
    const Transfer outcome = host_.on_copy ? host_.on_copy() : Transfer::done;
    return outcome == Transfer::done && !copy(from, to) ? Transfer::fault : outcome;
  }
  template <class Call>
  void deliver(Call call) {
    if (!alive()) return;
    host_.post([&host = host_, slot = slot_, call] {
      if (Nic* nic = host.living(slot)) call(*nic);
    });
  }
  Host& host_;
  const Slot from_;  // the process that sees the target this way
};

// ---- Nic

Nic::Nic(Host& host, Slot slot)
    : host_(host),
      slot_(slot),
      segment_memory_(map_zeros(test_segment_bytes)),
      table_memory_(map_zeros(tpt_bytes)),
      segment_(std::make_unique<Segment>(segment_memory_, test_segment_bytes)),
      adapter_(
          std::make_unique<Adapter>(slot, *segment_, reinterpret_cast<TptEntry*>(table_memory_), *this)) {
  static std::atomic<std::uint64_t> nics = 0;
  segment_->header().counters.identity = 2 * ++nics;
}

Nic::~Nic() {
  adapter_.reset();
  ::munmap(segment_memory_, test_segment_bytes);
  ::munmap(table_memory_, tpt_bytes);
}

PeerPtr Nic::peer(Slot slot, Wait) {
  Nic* target = host_.living(slot);
  const std::lock_guard lock(mutex_);
  if (target == nullptr) return nullptr;
  std::shared_ptr<MemoryPeer>& place = peers_[slot];
  if (!place || !place->alive()) place = std::make_shared<MemoryPeer>(host_, *target, slot_);
  return place;
}

HostPort::Reached Nic::reach(Slot slot, Ticket& ticket) {
  const bool undecided = on_reach && !on_reach(slot);
  ticket = undecided ? 1 : 0;
  if (undecided) return {.undecided = true};
  return {.peer = peer(slot, Wait::no)};
}

HostPort::Everybody Nic::everybody(Ticket& ticket) {
  Everybody all;
  for (Slot slot = 1; slot < host_.next_slot_; ++slot) {
    Reached one = reach(slot, ticket);
    if (one.undecided) return {{}, true};
    if (one.peer) all.peers.push_back(std::move(one.peer));
  }
  return all;
}

std::uint64_t Nic::now_ns() {
  ++clock_reads;
  const std::uint64_t now_ns = host_.now_ns();
  if (const auto other_thread = std::exchange(behind_clock, nullptr)) other_thread();
  return now_ns;
}

void Nic::wake_at(std::uint64_t deadline_ns) {
  {
    const std::lock_guard lock(host_.mutex_);
    host_.deadlines_.emplace(deadline_ns, slot_);
  }
  if (const auto other_thread = std::exchange(behind_timer, nullptr)) other_thread();
}

void Nic::raise_channel(std::uint32_t channel) {
  const std::lock_guard lock(mutex_);
  ++raised_[channel];
}

bool Nic::fault_in(void* at, std::uint64_t length, Use use) {
  return !on_fault_in || on_fault_in(at, length, use);
}

void Nic::async_event(AsyncEvent event, QueuePair* qp, SharedReceiveQueue* srq) {
  const std::lock_guard lock(mutex_);
  async_.push_back({event, qp, srq});
}

int Nic::channel_events(std::uint32_t channel) {
  const std::lock_guard lock(mutex_);
  return std::exchange(raised_[channel], 0);
}

std::vector<AsyncReport> Nic::async_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(async_, {});
}

// ---- Host

Host::~Host() = default;

Nic& Host::add_nic() {
  const Slot slot = next_slot_++;
  auto nic = std::make_unique<Nic>(*this, slot);
  const std::lock_guard lock(mutex_);
  return *nics_.emplace_back(std::move(nic));
}

Nic* Host::living(Slot slot) {
  const std::lock_guard lock(mutex_);
  for (auto& nic : nics_)
    if (nic->slot() == slot) return nic.get();
  return nullptr;
}

void Host::kill(Nic& victim) {
  std::vector<Nic*> others;
  {
    const std::lock_guard lock(mutex_);
    for (auto& nic : nics_) {
      if (nic.get() == &victim)
        dead_.push_back(std::move(nic));
      else
        others.push_back(nic.get());
    }
    std::erase(nics_, nullptr);
  }
  for (Nic* nic : others) {
    const std::lock_guard lock(nic->mutex_);
    const auto known = nic->peers_.find(victim.slot());
    if (known == nic->peers_.end()) continue;
    known->second->died();
    nic->peers_.erase(known);
    post([nic, slot = victim.slot()] { nic->adapter().peer_gone(slot); });
  }
}

Nic& Host::replace(Nic& killed) {
  auto nic = std::make_unique<Nic>(*this, killed.slot());
  const std::lock_guard lock(mutex_);
  return *nics_.emplace_back(std::move(nic));
}

void Host::post(std::function<void()> message) {
  const std::lock_guard lock(mutex_);
  messages_.push_back(std::move(message));
}

bool Host::pump() {
  std::deque<std::function<void()>> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(messages_);
  }
  for (auto& message : now) message();
  return !now.empty();
}

void Host::advance_in_vain(std::uint64_t ns) {
  const std::lock_guard lock(mutex_);
  now_ns_ += ns;
  deadlines_.erase(deadlines_.begin(), deadlines_.upper_bound(now_ns_));
}

void Host::advance(std::uint64_t ns) {
  const std::uint64_t end = now_ns_ + ns;
  for (;;) {
    Slot due = 0;
    {
      const std::lock_guard lock(mutex_);
      if (deadlines_.empty() || deadlines_.begin()->first > end) break;
      now_ns_ = std::max<std::uint64_t>(now_ns_, deadlines_.begin()->first);
      due = deadlines_.begin()->second;
      deadlines_.erase(deadlines_.begin());
    }
    if (Nic* nic = living(due)) nic->adapter().service();
  }
  now_ns_ = end;
}

}  // namespace weir::rnic::test
