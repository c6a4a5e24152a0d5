#include "tensor/hub/pushes_under_way.hpp"

#include <iterator>
#include <utility>

namespace weir::tensor {
namespace {
constexpr std::uint64_t least_bytes_per_ms = (std::uint64_t{64} << 20) / 1000;
}

std::uint64_t PushesUnderWay::bytes_of(const std::string& source) const {
  const auto known = bytes_.find(source);
  return known != bytes_.end() ? known->second : 0;
}

bool PushesUnderWay::has_share_for(const std::string& source, std::uint64_t bytes) const {
  const std::uint64_t used = bytes_of(source);
  return bytes <= limits_.bytes_per_source && used <= limits_.bytes_per_source - bytes;
}

PushesUnderWay::Stay PushesUnderWay::enter(Push push, TimePoint now) {
  bytes_[push.source] += push.bytes;
  entries_.push_back({std::move(push), now});
  return {*this, std::prev(entries_.end())};
}

void PushesUnderWay::remove(Entries::iterator at) {
  const auto source = bytes_.find(at->push.source);
  source->second -= at->push.bytes;
  if (source->second == 0) bytes_.erase(source);
  entries_.erase(at);
}

std::chrono::nanoseconds PushesUnderWay::still(Entry& entry, TimePoint now) {
  const std::optional<std::uint64_t> arrived = entry.push.arrived();
  if (arrived && std::exchange(entry.arrived, *arrived) != *arrived) entry.since = now;
  const std::chrono::milliseconds for_its_size(arrived ? 0 : entry.push.bytes / least_bytes_per_ms);
  return now - entry.since - for_its_size;
}

bool PushesUnderWay::make_room(TimePoint now) {
  Entry* stillest = nullptr;
  std::chrono::nanoseconds longest = limits_.undisturbed;
  for (Entry& each : entries_)
    if (const auto time = still(each, now); time >= longest) {
      longest = time;
      stillest = &each;
    }
  if (stillest == nullptr) return false;
  const auto end = std::move(stillest->push.end);  // the entry goes meanwhile
  end({Errc::too_much, "the push stood still, and others needed its part of push_bytes", 0});
  return true;
}

void PushesUnderWay::end_late(TimePoint now) {
  for (auto next = entries_.begin(); next != entries_.end();) {
    Entry& each = *next++;
    if (still(each, now) < limits_.patience) continue;
    const auto end = std::move(each.push.end);
    end({Errc::timed_out, "nothing of the push came", 0});
  }
}

}  // namespace weir::tensor
