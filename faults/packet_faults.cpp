#include "faults/packet_faults.hpp"

#include <algorithm>
#include <utility>

#include "faults/draw.hpp"

namespace weir::faults {
namespace {

constexpr std::uint32_t psn_mask = 0xffffff;
constexpr std::uint32_t management_qpn = 1;
// More packets than can be on their way; when there are more, their retransmissions are drawn as if they were
// new.
constexpr std::size_t max_hits = 1 << 16;

bool holds(const std::optional<Range>& wanted, std::uint64_t value) { return !wanted || wanted->has(value); }

}  // namespace

PacketFaults::PacketFaults(Plan plan, std::size_t remembered)
    : plan_(std::move(plan)), remembered_(remembered), tallies_(plan_.faults.size()) {}

void PacketFaults::queue_pair_made(std::uint32_t qpn) {
  queue_pairs_[qpn] = {.order = ++queue_pairs_made_, .first_psn = {}};
  std::erase_if(hits_, [&](const auto& hit) { return hit.first.qpn == qpn; });
}

void PacketFaults::first_psn(std::uint32_t qpn, Direction direction, std::uint32_t psn) {
  if (const auto found = queue_pairs_.find(qpn); found != queue_pairs_.end())
    found->second.first_psn[static_cast<std::size_t>(direction)] = psn & psn_mask;
}

std::uint64_t PacketFaults::order_of(std::uint32_t qpn) const {
  const auto found = queue_pairs_.find(qpn);
  return found != queue_pairs_.end() ? found->second.order : 0;
}

std::vector<std::uint32_t> PacketFaults::queue_pairs_in(const std::optional<Range>& orders) const {
  std::vector<std::uint32_t> numbers;
  for (const auto& [qpn, queue_pair] : queue_pairs_)
    if (holds(orders, queue_pair.order)) numbers.push_back(qpn);
  std::ranges::sort(numbers, {}, [&](std::uint32_t qpn) { return order_of(qpn); });
  return numbers;
}

// nullopt: no packet of one of our queue pairs.
std::optional<Firing> PacketFaults::seen(const Passing& packet, std::uint64_t now_ns) {
  const auto headers = headers_of(packet.bytes);
  if (!headers) return std::nullopt;
  const bool out = packet.direction == Direction::out;
  Firing firing{.at_ns = now_ns,
                .direction = packet.direction,
                .qpn = out ? packet.own_qpn : headers->destination,
                .psn = headers->psn,
                .headers = *headers,
                .bytes = packet.bytes.size(),
                .own_gid = packet.own_gid};
  const bool management = headers->destination == management_qpn;
  if (management) firing.qpn = management_qpn;
  const auto found = queue_pairs_.find(firing.qpn);
  if (!management && found == queue_pairs_.end()) return std::nullopt;
  if (management) return firing;
  firing.qp = found->second.order;
  // What answers a request bears the request's PSN.
  const bool requests_leave = out != is_response(*headers);
  auto& first =
      found->second.first_psn[static_cast<std::size_t>(requests_leave ? Direction::out : Direction::in)];
  if (!first) first = headers->psn;
  firing.psn = (headers->psn - *first) & psn_mask;
  return firing;
}

bool PacketFaults::meets(const Where& wanted, const Firing& packet) {
  if (wanted.from_ns && packet.at_ns < *wanted.from_ns) return false;
  if (wanted.until_ns && packet.at_ns >= *wanted.until_ns) return false;
  if (wanted.direction && *wanted.direction != packet.direction) return false;
  if (wanted.kind && !packet_kinds()[*wanted.kind].is(packet.headers)) return false;
  if (wanted.gid && (!packet.own_gid || !wanted.gid->has(*packet.own_gid))) return false;
  return holds(wanted.qp, packet.qp) && holds(wanted.psn, packet.psn);
}

std::size_t PacketFaults::HashOf::operator()(const Identity& of) const {
  const std::uint64_t one = std::uint64_t{of.qpn} << 32 | of.psn;
  const std::uint64_t other = std::uint64_t{of.fault} << 2 | std::uint64_t{of.direction} << 1 | of.response;
  return static_cast<std::size_t>(mixed(one ^ mixed(other)));
}

// The queue pair's order is in it, not its number, which is drawn anew in each run.
std::uint64_t PacketFaults::draw(const Identity& packet, std::uint64_t hits) const {
  const auto known = queue_pairs_.find(packet.qpn);
  const std::uint64_t order = known != queue_pairs_.end() ? known->second.order : management_qp;
  const std::uint64_t stream = order << 2 | std::uint64_t{packet.direction} << 1 | packet.response;
  return mixed(mixed(mixed(mixed(plan_.seed) ^ packet.fault) ^ stream) ^
               (std::uint64_t{packet.psn} << 32 | hits));
}

bool PacketFaults::fires(std::size_t index, const Firing& packet) {
  const Where& wanted = plan_.faults[index].where;
  const Tally& tally = tallies_[index];
  if (!holds(wanted.nth, tally.met)) return false;
  if (wanted.every && tally.met % *wanted.every != 0) return false;
  if (!wanted.psn && wanted.times && tally.fired >= *wanted.times) return false;
  if (!wanted.psn && !wanted.rate) return true;
  const Identity identity{static_cast<std::uint32_t>(index), packet.qpn, packet.psn,
                          static_cast<std::uint8_t>(packet.direction), is_response(packet.headers)};
  const auto before = hits_.find(identity);
  const std::uint64_t hits = before != hits_.end() ? before->second : 0;
  if (wanted.psn && wanted.times && hits >= *wanted.times) return false;
  if (wanted.rate && !is_within(draw(identity, hits), *wanted.rate)) return false;
  if (before == hits_.end() && hits_.size() >= max_hits) hits_.clear();
  ++hits_[identity];
  return true;
}

void PacketFaults::count(std::size_t index, const Firing& packet) {
  Tally& tally = tallies_[index];
  ++tally.fired;
  if (tally.firings.size() < remembered_) tally.firings.push_back(packet);
}

Verdict PacketFaults::judge(const Passing& passing, std::uint64_t now_ns) {
  Verdict verdict;
  const auto packet = seen(passing, now_ns);
  if (!packet) return verdict;
  ++packets_[static_cast<std::size_t>(passing.direction)];
  for (std::size_t i = 0; i < plan_.faults.size() && !verdict.drop; ++i) {
    const Fault& fault = plan_.faults[i];
    if (!is_about_packets(fault.act) || !meets(fault.where, *packet)) continue;
    if (fault.act == Act::alter && !payload_of(passing.bytes)) continue;
    if (fault.act == Act::pause && passing.direction == Direction::in) continue;
    ++tallies_[i].met;
    if (!fires(i, *packet)) continue;
    count(i, *packet);
    switch (fault.act) {
      case Act::drop:
      case Act::gid_gone:
      case Act::down:
        verdict.drop = true;
        break;
      case Act::duplicate:
        verdict.copies += fault.amount;
        break;
      case Act::corrupt:
        verdict.corrupt = true;
        verdict.drawn = mixed(mixed(plan_.seed ^ i) ^ tallies_[i].fired);
        break;
      case Act::alter:
        verdict.alter = true;
        verdict.drawn = mixed(mixed(plan_.seed ^ i) ^ tallies_[i].fired);
        break;
      case Act::delay:
        verdict.delay_ns += fault.amount;
        break;
      case Act::reorder:
        verdict.overtaken_by += fault.amount;
        break;
      case Act::pause:
        verdict.paused = true;
        break;
      case Act::mark:
        verdict.mark = true;
        break;
      case Act::rnr:
      case Act::refuse:
      case Act::complete:
      case Act::qp_error:
      case Act::kill:
      case Act::stop:
        break;  // about no packets
    }
  }
  return verdict;
}

}  // namespace weir::faults
