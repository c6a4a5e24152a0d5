#include "verbs/nic/faulty_device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "faults/firing_report.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {
namespace {

constexpr std::uint8_t congestion_experienced = 3;  // RFC 3168: the lower two bits

bool same_way(const rnic::PacketRoute& one, const rnic::PacketRoute& other) {
  return one.is_same_way(other) && one.from == other.from;
}

std::uint64_t ns_between(link::Clock::time_point from, link::Clock::time_point to) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

}  // namespace

std::uint32_t FaultyDevice::Packet::own_qpn() const {
  return direction == faults::Direction::out ? route.from.value() : wire::destination_of(bytes);
}

void FaultyDevice::Packet::keep() {
  if (!kept.empty()) return;
  kept.assign(bytes.begin(), bytes.end());
  bytes = datagram.bytes = kept;
}

// Changes a bit. False: packets between users of one host have no ICRC to notice it by, so it is lost.
bool FaultyDevice::Packet::corrupt(std::uint64_t drawn) {
  constexpr std::size_t not_covered = 4;  // by the ICRC: this byte of the BTH is the switches'
  if (route.process != 0 || datagram.process != 0) return false;
  keep();
  std::size_t place = drawn / 8 % kept.size();
  if (place == not_covered) ++place;
  kept[place % kept.size()] ^= std::byte(1u << drawn % 8);
  return true;
}

// Changes a bit of the payload, which nothing on the way notices. A packet that was damaged before stays as
// it is.
void FaultyDevice::Packet::alter(std::uint64_t drawn, const hash::SipKey* key) {
  keep();
  const auto payload = faults::payload_of(kept);
  if (!payload) return;
  const bool out = direction == faults::Direction::out;
  const wire::IcrcRoute icrc({.source = out ? route.source : datagram.source,
                              .destination = out ? route.destination : datagram.destination,
                              .source_port = out ? wire::roce_port : datagram.source_port,
                              .destination_port = wire::roce_port},
                             key);
  const bool is_checked = route.process == 0 && datagram.process == 0;
  const auto id = icrc.check(kept, datagram.likely_id);
  if (is_checked && !id) return;
  const auto place = static_cast<std::size_t>(payload->data() - kept.data()) + drawn / 8 % payload->size();
  kept[place] ^= std::byte(1u << drawn % 8);
  if (!is_checked) return;
  const std::size_t covered = kept.size() - wire::icrc_bytes;
  std::ranges::copy(icrc.of(std::span(kept).first(covered), *id),
                    kept.begin() + static_cast<std::ptrdiff_t>(covered));
}

FaultyDevice::FaultyDevice(faults::Plan plan, PacketDevice& behind, link::SameHostLink& link, Deliver deliver,
                           SlowReceiver::Withhold withhold, CountWait count_wait, const hash::SipKey* key)
    : behind_(behind),
      link_(link),
      deliver_(std::move(deliver)),
      count_wait_(std::move(count_wait)),
      key_(key),
      receiver_(plan, link, begun_, std::move(withhold)),
      faults_(plan),
      calls_(std::move(plan)) {}

void FaultyDevice::queue_pair_made(std::uint32_t qpn) {
  std::uint64_t order = 0;
  {
    const std::lock_guard lock(mutex_);
    faults_.queue_pair_made(qpn);
    order = faults_.order_of(qpn);
  }
  receiver_.queue_pair_made(qpn, order);
}

void FaultyDevice::first_psn(std::uint32_t qpn, faults::Direction direction, std::uint32_t psn) {
  const std::lock_guard lock(mutex_);
  faults_.first_psn(qpn, direction, psn);
}

std::optional<std::uint64_t> FaultyDevice::judge(faults::Call call, std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  return calls_.judge(call, faults_.order_of(qpn), ns_between(begun_, link::Clock::now()));
}

void FaultyDevice::schedule(const Turn& begin, const Turn& end) {
  receiver_.schedule();
  const auto since = [&](std::uint64_t ns) { return begun_ + std::chrono::nanoseconds(ns); };
  for (std::size_t i = 0; i < faults_.plan().faults.size(); ++i) {
    if (!faults::begins_by_itself(fault(i))) continue;
    const faults::Where& where = fault(i).where;
    link_.at(since(where.from_ns.value_or(0)), [begin, i] { begin(i); });
    if (where.until_ns) link_.at(since(*where.until_ns), [end, i] { end(i); });
  }
}

std::vector<std::uint32_t> FaultyDevice::queue_pairs_of(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return faults_.queue_pairs_in(fault(index).where.qp);
}

void FaultyDevice::ended(std::size_t index, std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  calls_.fired(index, faults_.order_of(qpn), ns_between(begun_, link::Clock::now()));
}

// A fault without gid= is about all of them.
bool FaultyDevice::is_in_force(faults::Act act, std::optional<std::uint64_t> gid) const {
  const std::uint64_t now_ns = ns_between(begun_, link::Clock::now());
  return std::ranges::any_of(faults_.plan().faults, [&](const faults::Fault& fault) {
    const faults::Where& where = fault.where;
    if (fault.act != act || (gid && where.gid && !where.gid->has(*gid))) return false;
    return now_ns >= where.from_ns.value_or(0) && now_ns < where.until_ns.value_or(UINT64_MAX);
  });
}

std::optional<std::uint64_t> FaultyDevice::own_gid_of(const Packet& packet) const {
  if (gid_index_ == nullptr) return std::nullopt;
  return gid_index_(packet.direction == faults::Direction::out ? packet.route.source
                                                               : packet.datagram.destination);
}

void FaultyDevice::finish() {
  std::vector<Packet> late;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [ticket, held] : held_)
      if (held.packet.direction == faults::Direction::out) late.push_back(std::move(held.packet));
    held_.clear();
  }
  send_onwards(late);
}

// With mutex_ held.
template <class Report>
std::string FaultyDevice::reported(Report as) const {
  const faults::Program program{.name = ::program_invocation_short_name,
                                .process = static_cast<int>(::getpid()),
                                .now_ns = ns_between(begun_, link::Clock::now())};
  return receiver_.read([&](const faults::ReceiveFaults& receives) {
    return as(faults::Deciders{faults_, calls_, receives}, program);
  });
}

std::string FaultyDevice::report() const {
  const std::lock_guard lock(mutex_);
  std::string text = reported(faults::report_for_people);
  if (lost_in_pause_ != 0)
    text += "  " + std::to_string(lost_in_pause_) +
            " packets were lost in a pause: " + std::to_string(max_held) + " others waited\n";
  if (not_held_ != 0)
    text += "  " + std::to_string(not_held_) +
            " packets were neither delayed nor reordered: " + std::to_string(max_held) + " others waited\n";
  return text;
}

std::string FaultyDevice::report_as_json() const {
  const std::lock_guard lock(mutex_);
  return reported(faults::report_as_json);
}

std::string FaultyDevice::report_as_annotations(std::string_view faults_file) const {
  const std::lock_guard lock(mutex_);
  return reported([&](const faults::Deciders& deciders, const faults::Program& program) {
    return faults::report_as_annotations(deciders, program, faults_file);
  });
}

// ---- one packet

void FaultyDevice::pass(Packet packet, std::vector<Packet>& onwards) {
  const link::Clock::time_point now = link::Clock::now();
  const faults::Direction direction = packet.direction;
  const std::uint32_t qpn = packet.own_qpn();
  const faults::Verdict verdict = faults_.judge({.direction = direction,
                                                 .own_qpn = packet.route.from.value(),
                                                 .bytes = packet.bytes,
                                                 .own_gid = own_gid_of(packet)},
                                                ns_between(begun_, now));
  if (verdict.drop) return;
  if (verdict.mark) {
    packet.route.traffic_class |= congestion_experienced;
    packet.datagram.traffic_class |= congestion_experienced;
  }
  if (verdict.alter) packet.alter(verdict.drawn, key_);
  if (verdict.corrupt && !packet.corrupt(verdict.drawn)) return;
  for (std::uint64_t copy = 0; copy <= verdict.copies; ++copy) {
    Packet one = packet;
    if (!one.kept.empty()) one.bytes = one.datagram.bytes = one.kept;
    const auto delay = std::chrono::nanoseconds(verdict.delay_ns);
    if (verdict.paused) {
      pause(std::move(one));
      continue;
    }
    if (verdict.overtaken_by != 0 && hold(one, now + delay + longest_overtaking, verdict.overtaken_by))
      continue;
    if (verdict.overtaken_by == 0 && verdict.delay_ns != 0 && hold(one, now + delay, 0)) continue;
    onwards.push_back(std::move(one));
  }
  if (verdict.overtaken_by == 0) overtake(direction, qpn, onwards);
}

bool FaultyDevice::hold(Packet packet, link::Clock::time_point until, std::uint64_t overtaken_by) {
  if (held_.size() >= max_held) {
    ++not_held_;
    return false;
  }
  packet.keep();
  const Ticket ticket = next_ticket_++;
  Held& held = held_.emplace(ticket, Held{std::move(packet), overtaken_by}).first->second;
  held.packet.bytes = held.packet.datagram.bytes = held.packet.kept;
  link_.at(until, [this, ticket] { release(ticket); });
  return true;
}

void FaultyDevice::pause(Packet packet) {
  if (held_.size() >= max_held) {  // as where a NIC's buffer is full; passing it on would end the pause
    ++lost_in_pause_;
    return;
  }
  if (!std::exchange(any_paused_, true)) paused_since_ = link::Clock::now();
  packet.keep();
  Held& held = held_.emplace(next_ticket_++, Held{std::move(packet), 0, true}).first->second;
  held.packet.bytes = held.packet.datagram.bytes = held.packet.kept;
}

// In the order in which they came.
void FaultyDevice::end_pause(std::vector<Packet>& onwards) {
  if (!any_paused_ || is_in_force(faults::Act::pause)) return;
  any_paused_ = false;
  count_wait_(std::chrono::duration_cast<std::chrono::microseconds>(link::Clock::now() - paused_since_));
  for (auto at = held_.begin(); at != held_.end();) {
    if (!at->second.paused) {
      ++at;
      continue;
    }
    onwards.push_back(std::move(at->second.packet));
    at = held_.erase(at);
  }
}

void FaultyDevice::resume() {
  std::vector<Packet> onwards;
  {
    const std::lock_guard lock(mutex_);
    end_pause(onwards);
  }
  send_onwards(onwards);
}

// A packet of that queue pair goes past those that wait for it.
void FaultyDevice::overtake(faults::Direction direction, std::uint32_t qpn, std::vector<Packet>& onwards) {
  for (auto at = held_.begin(); at != held_.end();) {
    Held& held = at->second;
    const bool waits =
        held.to_be_overtaken_by != 0 && held.packet.direction == direction && held.packet.own_qpn() == qpn;
    if (!waits || --held.to_be_overtaken_by != 0) {
      ++at;
      continue;
    }
    onwards.push_back(std::move(held.packet));
    at = held_.erase(at);
  }
}

// On the link's thread.
void FaultyDevice::release(Ticket ticket) {
  std::vector<Packet> due;
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(ticket);
    if (found == held_.end()) return;  // overtaken
    due.push_back(std::move(found->second.packet));
    held_.erase(found);
  }
  if (due.front().direction == faults::Direction::out)
    send_onwards(due);
  else
    deliver_(due.front().datagram);
}

// ---- both ways

void FaultyDevice::send_onwards(std::span<const Packet> packets) {
  std::vector<rnic::PacketRun> runs;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    runs.push_back({packets[i].bytes, static_cast<std::uint16_t>(packets[i].bytes.size())});
    if (i + 1 < packets.size() && same_way(packets[i].route, packets[i + 1].route)) continue;
    behind_.send(packets[i].route, runs);
    runs.clear();
  }
}

void FaultyDevice::send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) {
  std::vector<Packet> onwards;
  {
    const std::lock_guard lock(mutex_);
    end_pause(onwards);
    for (const rnic::PacketRun& run : runs) {
      std::size_t place = 0;
      for (auto rest = run.bytes; !rest.empty(); ++place) {
        const auto bytes = rest.first(std::min<std::size_t>(run.segment, rest.size()));
        rest = rest.subspan(bytes.size());
        rnic::PacketRoute of_one = route;
        if (!run.from.empty()) of_one.from = run.from[place];
        pass({.direction = faults::Direction::out, .route = of_one, .datagram = {}, .bytes = bytes}, onwards);
      }
    }
  }
  send_onwards(onwards);
}

void FaultyDevice::receive(const rnic::HostPort::PacketSink& sink) {
  behind_.receive([&](std::span<const rnic::PacketDatagram> arrived) { take_arrived(arrived, sink); });
}

void FaultyDevice::take_arrived(std::span<const rnic::PacketDatagram> arrived,
                                const rnic::HostPort::PacketSink& sink) {
  std::vector<Packet> onwards;
  {
    const std::lock_guard lock(mutex_);
    for (const rnic::PacketDatagram& datagram : arrived)
      pass({.direction = faults::Direction::in, .route = {}, .datagram = datagram, .bytes = datagram.bytes},
           onwards);
  }
  std::vector<rnic::PacketDatagram> datagrams;
  datagrams.reserve(onwards.size());
  for (const Packet& packet : onwards) datagrams.push_back(packet.datagram);
  sink(datagrams);
}

}  // namespace weir::verbs
