#include "verbs/nic/admission.hpp"

#include <net/if.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

#include "link/udp/arrival_filter.hpp"
#include "wire/mad.hpp"

namespace weir::verbs {
namespace {

using rnic::Dropped;

std::uint64_t nanoseconds_of(link::Clock::time_point at) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count());
}

}  // namespace

void Admission::filter(int socket, Later later) {
  const std::lock_guard lock(mutex_);
  socket_ = socket;
  later_ = std::move(later);
  give_filter();
}

void Admission::expect(const link::IpAddress& peer) {
  const std::lock_guard lock(mutex_);
  if (peers_[peer]++ == 0) give_filter();
}

// The filter lets some more of it through until the next peer comes: its last packets may be on their way.
void Admission::expect_no_more(const link::IpAddress& peer) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  if (found != peers_.end() && --found->second == 0) peers_.erase(found);
}

void Admission::take_datagrams() {
  const std::lock_guard lock(mutex_);
  if (datagrams_) return;
  datagrams_ = true;
  give_filter();
}

// Without a filter, because the kernel takes none or no more of this size, packets are refused here.
void Admission::give_filter() {
  if (socket_ < 0) return;
  std::vector<link::Slot> others;
  for (link::Slot slot = 1; slot < link::max_slots; ++slot)
    if (occupied_.test(slot) && slot != link_.slot()) others.push_back(slot);
  std::vector<link::IpAddress> peers;
  for (const auto& [peer, count] : peers_) peers.push_back(peer);
  auto code = link::arrival_filter({.own = link_.slot(),
                                    .slot_shift = slot_shift_,
                                    .datagrams = datagrams_,
                                    .loopback = ::if_nametoindex("lo"),
                                    .others = others,
                                    .peers = peers,
                                    .cut = cut_.now()});
  sock_fprog program{};
  program.len = static_cast<unsigned short>(code.size());
  program.filter = code.data();
  if (::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    (void)::setsockopt(socket_, SOL_SOCKET, SO_DETACH_FILTER, nullptr, 0);
}

// mutex_ held, as in what follows.
void Admission::cut_strangers() {
  const link::CutSources before = cut_.now();
  if (cut_.end_window() != before) give_filter();
}

// While strangers send nothing, nothing runs.
void Admission::end_window_later() {
  later_(link::StrangerCut::window, [this] {
    const std::lock_guard lock(mutex_);
    const bool came = cut_.came() != 0;
    cut_strangers();
    window_ends_ = came || cut_.now().buckets != 0;
    if (window_ends_) end_window_later();
  });
}

void Admission::look(link::Clock::time_point now) {
  looked_ = now;
  Slots occupied;
  for (const link::Slot slot : link_.occupied())
    if (slot < link::max_slots) occupied.set(slot);
  if (occupied == occupied_) return;
  occupied_ = occupied;
  give_filter();
}

// Another user's process is a network of its own: what it says of its address is not checked here.
link::SourceBudget::Is Admission::known(const rnic::PacketDatagram& datagram) const {
  using Is = link::SourceBudget::Is;
  return datagram.process != 0 || peers_.contains(datagram.source) ? Is::peer : Is::stranger;
}

std::optional<Dropped> Admission::refuse_management(const rnic::PacketDatagram& datagram,
                                                    const wire::Packet& packet, link::Clock::time_point now) {
  constexpr std::uint8_t datagram_opcode = wire::opcode(wire::Service::ud, wire::Operation::send_only);
  if (packet.bth.opcode != datagram_opcode || packet.payload.size() != wire::mad_bytes)
    return Dropped::malformed;
  if (packet.deth.qkey != wire::cm_qkey) return Dropped::wrong_qkey;
  const std::lock_guard lock(mutex_);
  const link::SourceBudget::Is source = known(datagram);
  if (source == link::SourceBudget::Is::stranger && later_) {
    if (cut_.count(datagram.source)) cut_strangers();
    if (!std::exchange(window_ends_, true)) end_window_later();
  }
  if (management_.take(datagram.source, source, nanoseconds_of(now))) return std::nullopt;
  return Dropped::over_budget;
}

std::optional<Dropped> Admission::refuse_passing_on(rnic::Slot slot, const rnic::PacketDatagram& datagram,
                                                    link::Clock::time_point now) {
  if (!is_occupied(slot, now)) return Dropped::no_process;
  const std::lock_guard lock(mutex_);
  if (passed_.take(datagram.source, known(datagram), nanoseconds_of(now))) return std::nullopt;
  return Dropped::over_budget;
}

void Admission::look_again() {
  const std::lock_guard lock(mutex_);
  look(link::Clock::now());
}

bool Admission::is_occupied(rnic::Slot slot, link::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (now - looked_ >= look_interval) look(now);
  return slot < link::max_slots && occupied_.test(slot);
}

bool Admission::may_dial(rnic::Slot slot, link::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto [last, first] = dialled_.try_emplace(slot, now);
  if (!first && now - last->second < dial_interval) return false;
  last->second = now;
  return true;
}

}  // namespace weir::verbs
