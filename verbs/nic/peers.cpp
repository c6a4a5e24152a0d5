#include "verbs/nic/peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "link/memory/process_memory.hpp"
#include "link/not_cancelled.hpp"
#include "rnic/memory/trapped_copy.hpp"
#include "verbs/nic/messages.hpp"

namespace weir::verbs {
namespace {

using Transfer = rnic::Peer::Transfer;

constexpr std::chrono::milliseconds retry_interval{100};

// Copies within our own memory; both lists of pieces have the same total length.
enum class Local : bool { from, to };
Transfer copy_pieces(std::span<const iovec> from, std::span<const iovec> to, Local local) {
  std::size_t from_done = 0, to_done = 0;
  while (!from.empty() && !to.empty()) {
    const std::size_t length = std::min(from[0].iov_len - from_done, to[0].iov_len - to_done);
    const iovec ours{static_cast<std::byte*>(from[0].iov_base) + from_done, length};
    auto* const place = static_cast<std::byte*>(to[0].iov_base) + to_done;
    const auto trapped =
        rnic::try_copy({&ours, 1}, {place, length}, [&] { std::memmove(place, ours.iov_base, length); });
    if (trapped != rnic::Trapped::no)
      return (trapped == rnic::Trapped::pieces) == (local == Local::from) ? Transfer::local_fault
                                                                          : Transfer::fault;
    from_done += length;
    to_done += length;
    if (from_done == from[0].iov_len) from = from.subspan(1), from_done = 0;
    if (to_done == to[0].iov_len) to = to.subspan(1), to_done = 0;
  }
  return from.empty() ? Transfer::done : Transfer::fault;
}

// Called after the kernel found that one side is missing.
Transfer missing_side(std::span<const iovec> local, link::Touch touch) {
  const auto is_there = [touch](const iovec& piece) {
    return link::fault_in(piece.iov_base, piece.iov_len, touch);
  };
  return std::ranges::all_of(local, is_there) ? Transfer::fault : Transfer::local_fault;
}

}  // namespace

// ---- our own process

OwnPeer::OwnPeer(rnic::Slot slot, link::Mapping& segment, link::Mapping& table, rnic::Adapter& adapter,
                 link::SameHostLink& link)
    : adapter_(adapter), link_(link) {
  slot_ = slot;
  segment_ = reinterpret_cast<rnic::SegmentHeader*>(segment.data());
  segment_size_ = segment.size();
  tpt_ = reinterpret_cast<const rnic::TptEntry*>(table.data());
}

std::byte* OwnPeer::window(const rnic::TptEntry& entry, std::uint64_t addr, std::uint64_t length) {
  void* const at = rnic::ProtectionTable::address(entry, addr);
  if (!(entry.access & rnic::access::on_demand)) return static_cast<std::byte*>(at);
  const auto touch = entry.access & rnic::access::local_write ? link::Touch::write : link::Touch::read;
  return link::fault_in(at, length, touch) ? static_cast<std::byte*>(at) : nullptr;
}
// A piece of on-demand memory may be missing. The kernel makes the copy, because it reports
// that and does not trap.
rnic::Peer::Transfer OwnPeer::write(std::span<const iovec> local, const Remote& remote) {
  if (link::write_own_memory(local, remote.pieces)) return Transfer::done;
  return errno == EFAULT ? missing_side(local, link::Touch::read)
                         : copy_pieces(local, remote.pieces, Local::from);
}
rnic::Peer::Transfer OwnPeer::read(std::span<const iovec> local, const Remote& remote) {
  if (link::read_own_memory(local, remote.pieces)) return Transfer::done;
  return errno == EFAULT ? missing_side(local, link::Touch::write)
                         : copy_pieces(remote.pieces, local, Local::to);
}
void OwnPeer::kick(rnic::Qpn parked) {
  link_.post([this, parked] { adapter_.kicked(parked); });
}
void OwnPeer::raise_cq_event(std::uint32_t cq_index) { adapter_.raise_cq(cq_index); }
void OwnPeer::report_fault(rnic::Qpn theirs, rnic::Fault fault) {
  link_.post([this, theirs, fault] { adapter_.faulted(theirs, fault); });
}
void OwnPeer::report_srq_limit(std::uint32_t srq_index) {
  link_.post([this, srq_index] { adapter_.srq_limit(srq_index); });
}
void OwnPeer::report_withheld(rnic::Qpn theirs, std::uint32_t message) {
  link_.post([this, theirs, message] { adapter_.host().receive_withheld(theirs, message); });
}
void OwnPeer::report_closed(rnic::Qpn) {
  link_.post([this] { adapter_.queue_pair_closed(); });
}

void OwnPeer::return_receive(const TakenFrom& taken) {
  link_.post([this, taken] { adapter_.receive_returned(slot_, taken); });
}

// ---- a neighbour

std::shared_ptr<NeighbourPeer> NeighbourPeer::adopt(link::NeighbourPtr neighbour, link::SameHostLink& link,
                                                    Tier first) {
  const link::Greeting& greeting = neighbour->greeting();
  GreetingBody body;
  if (greeting.fds.size() != 2 || greeting.body.size() != sizeof body) return nullptr;
  std::memcpy(&body, greeting.body.data(), sizeof body);
  if (body.magic != rnic::segment_magic) return nullptr;
  // The sealed size is checked, so no index below can leave the mapping.
  if (!link::never_shrinks(greeting.fds[0].get()) || !link::never_shrinks(greeting.fds[1].get()))
    return nullptr;
  if (link::file_bytes(greeting.fds[0].get()) < rnic::segment_rings_offset) return nullptr;
  if (link::file_bytes(greeting.fds[1].get()) != rnic::tpt_bytes) return nullptr;
  using Rights = link::Mapping::Rights;
  auto segment = link::Mapping::of_file(greeting.fds[0].get(), link::file_bytes(greeting.fds[0].get()),
                                        Rights::read_write);
  auto table = link::Mapping::of_file(greeting.fds[1].get(), rnic::tpt_bytes, Rights::read);
  if (!segment || !table) return nullptr;
  neighbour->close_greeting_fds();
  std::shared_ptr<NeighbourPeer> made(
      new NeighbourPeer(std::move(neighbour), link, body, std::move(*segment), std::move(*table)));
  if (first != Tier::kernel || !made->memory_.reached()) made->use_mover();
  return made;
}

NeighbourPeer::NeighbourPeer(link::NeighbourPtr neighbour, link::SameHostLink& link, const GreetingBody& body,
                             link::Mapping segment, link::Mapping table)
    : neighbour_(std::move(neighbour)),
      link_(link),
      memory_(neighbour_->pid(), body.probe, body.token),
      handover_(*this, link.slot()),
      segment_mapping_(std::move(segment)),
      table_mapping_(std::move(table)) {
  slot_ = neighbour_->slot();
  segment_ = reinterpret_cast<rnic::SegmentHeader*>(segment_mapping_.data());
  segment_size_ = segment_mapping_.size();
  tpt_ = reinterpret_cast<const rnic::TptEntry*>(table_mapping_.data());
  windows_lost_ = &link::GuardedMapping::any_lost();
}

NeighbourPeer::~NeighbourPeer() {
  for (auto& window : windows_) delete window.load();
}

std::byte* NeighbourPeer::window(const rnic::TptEntry& entry, std::uint64_t addr, std::uint64_t length) {
  const std::uint32_t id = entry.window;
  if (id == 0) return nullptr;
  // acquire: pairs with window_arrived(), which publishes only a complete mapping.
  const Window* window = windows_[id % max_windows].load(std::memory_order_acquire);
  if (window == nullptr || window->id != id) {
    ask_for_window(id);
    return nullptr;
  }
  if (windows_lost_->load(std::memory_order_relaxed) && window->mapping.lost()) return nullptr;
  const std::uint64_t offset = entry.window_offset + (addr - entry.addr);
  if (offset > window->mapping.size() || length > window->mapping.size() - offset) return nullptr;
  return window->mapping.data() + offset;
}

void NeighbourPeer::ask_for_window(std::uint32_t id) {
  std::atomic<std::uint32_t>& asked = asked_[id % max_windows];
  if (asked.load(std::memory_order_relaxed) == id || asked.exchange(id) == id) return;
  if (!message::send(*neighbour_, message::want_window, id)) asked.store(0);
}

void NeighbourPeer::window_arrived(std::uint32_t id, const link::UniqueFd& file, std::uint64_t bytes) {
  std::atomic<Window*>& place = windows_[id % max_windows];
  if (place.load() != nullptr || bytes == 0 || link::file_bytes(file.get()) < bytes) return;
  auto mapping = link::GuardedMapping::of_file(file.get(), bytes);
  if (mapping) place.store(new Window{id, std::move(*mapping)}, std::memory_order_release);
}

std::unique_ptr<NeighbourPeer::Window> NeighbourPeer::take_window(std::uint32_t id) {
  std::atomic<Window*>& place = windows_[id % max_windows];
  Window* window = place.load();
  if (window == nullptr || window->id != id) return nullptr;
  place.store(nullptr);
  return std::unique_ptr<Window>(window);
}

rnic::Peer::Transfer NeighbourPeer::write(std::span<const iovec> local, const Remote& remote) {
  if (tier_.load(std::memory_order_relaxed) == Tier::kernel) {
    if (memory_.write(local, remote.pieces)) return Transfer::done;
    if (const auto failed = refused("process_vm_writev", local, link::Touch::read)) return *failed;
  }
  return retried_later(handover_.write(local, remote, patience()));
}

rnic::Peer::Transfer NeighbourPeer::read(std::span<const iovec> local, const Remote& remote) {
  if (tier_.load(std::memory_order_relaxed) == Tier::kernel) {
    if (memory_.read(local, remote.pieces)) return Transfer::done;
    if (const auto failed = refused("process_vm_readv", local, link::Touch::write)) return *failed;
  }
  return retried_later(handover_.read(local, remote, patience()));
}

// No part of this call is outstanding, so it may go on in the other tier. Calls that are in the
// kernel now end as they may.
std::optional<rnic::Peer::Transfer> NeighbourPeer::refused(const char* call, std::span<const iovec> local,
                                                           link::Touch touch) {
  const int error = errno;
  if (error == EPERM || error == ENOSYS) {
    use_mover();
    return std::nullopt;
  }
  if (error == EFAULT && missing_side(local, touch) == Transfer::local_fault) return Transfer::local_fault;
  // The pid is another program's now: the news that the connection ended is on its way.
  if (error == ESRCH || !memory_.reached()) return Transfer::gone;
  // The completion can only say "remote operational error", so print the cause, once for each process.
  if (!complained_.exchange(true)) {
    std::fprintf(
        stderr,
        "weir: %s on process %d: %s: the region was unmapped while registered, or its file was cut short\n",
        call, static_cast<int>(neighbour_->pid()), std::strerror(error));
  }
  return Transfer::fault;
}

void NeighbourPeer::use_mover() {
  if (tier_.exchange(Tier::mover) == Tier::mover) return;
  (void)message::send(*neighbour_, message::want_mover, 0);
}

// The mover kicks initiators whose copies it found cancelled. It does not know about those that found no free
// lane, nor that a message to start it was lost. So a timer for each neighbour retries as well.
rnic::Peer::Transfer NeighbourPeer::retried_later(Transfer outcome) {
  if (outcome != Transfer::late && outcome != Transfer::unfinished && outcome != Transfer::refused)
    return outcome;
  if (retry_due_->exchange(true)) return outcome;
  (void)message::send(*neighbour_, message::want_mover, 0);
  link_.at(link::Clock::now() + retry_interval, [&link = link_, due = retry_due_] {
    due->store(false);
    if (const auto self = link.connected(link.slot())) (void)message::send(*self, message::kick, 0);
  });
  return outcome;
}

// The progress thread must serve others; but on a busy machine it takes a time slice before a mover runs.
std::chrono::nanoseconds NeighbourPeer::patience() const {
  return std::chrono::milliseconds(link_.on_progress_thread() ? 5 : 20);
}

void NeighbourPeer::kick(rnic::Qpn parked) {
  (void)message::send(*neighbour_, message::kick, parked.value());
}
void NeighbourPeer::report_fault(rnic::Qpn theirs, rnic::Fault fault) {
  (void)message::send(*neighbour_, message::fault, theirs.value(), static_cast<std::uint64_t>(fault));
}
void NeighbourPeer::report_srq_limit(std::uint32_t index) {
  (void)message::send(*neighbour_, message::srq_limit, index);
}
void NeighbourPeer::report_withheld(rnic::Qpn theirs, std::uint32_t number) {
  (void)message::send(*neighbour_, message::withheld, theirs.value(), number);
}
void NeighbourPeer::report_closed(rnic::Qpn theirs) {
  (void)message::send(*neighbour_, message::qp_closed, theirs.value());
}

void NeighbourPeer::return_receive(const TakenFrom& taken) {
  (void)message::send(*neighbour_, message::return_receive, taken.srq_index,
                      std::uint64_t{taken.incarnation} << 32 | taken.wqe);
}

// Wakes the sleeper directly: once we have asked for its channel's eventfd we hold a copy. Until then we go
// through its progress thread.
void NeighbourPeer::raise_cq_event(std::uint32_t cq_index) {
  const link::NotCancelled whole;
  const std::uint32_t channel = segment_->cqs[cq_index].channel.load(std::memory_order_relaxed);
  if (channel == 0) return;
  const std::lock_guard lock(mutex_);
  if (const auto found = channels_.find(channel); found != channels_.end()) {
    const std::uint64_t one = 1;
    if (::write(found->second.get(), &one, sizeof one) == sizeof one) return;
  } else if (!std::exchange(asked_channels_[channel], true)) {
    (void)message::send(*neighbour_, message::want_channel, channel);
  }
  (void)message::send(*neighbour_, message::cq_event, cq_index);
}

void NeighbourPeer::channel_arrived(std::uint32_t channel, link::UniqueFd eventfd) {
  const std::lock_guard lock(mutex_);
  if (asked_channels_.contains(channel)) channels_[channel] = std::move(eventfd);
}

void NeighbourPeer::channel_gone(std::uint32_t channel) {
  const std::lock_guard lock(mutex_);
  channels_.erase(channel);
  asked_channels_.erase(channel);
}

}  // namespace weir::verbs
