#include "rpc/pool/known_servers.hpp"

#include <algorithm>

namespace weir::rpc {

namespace {
bool is_in(const KnownServers::Tried& tried, const KnownServerPtr& known) {
  return std::ranges::find(tried, known) != tried.end();
}
}  // namespace

void KnownServers::list(std::span<const std::string> addresses) {
  for (const KnownServerPtr& known : all_)
    known->listed = std::ranges::find(addresses, known->address) != addresses.end();
  for (const std::string& address : addresses)
    if (std::ranges::none_of(all_, [&](const KnownServerPtr& one) { return one->address == address; }))
      all_.push_back(std::make_shared<KnownServer>(address));
}

void KnownServers::forget_unlisted() {
  std::erase_if(all_, [](const KnownServerPtr& known) {
    return !known->listed && known->connections.empty() && !known->connecting;
  });
}

bool KnownServers::is_preferred(const KnownServer& known, Clock::time_point now) const {
  if (!known.listed || known.record.ejected()) return false;
  if (known.well()) return true;
  return known.may_be_tried(now) && std::ranges::none_of(all_, [](const KnownServerPtr& one) {
           return one->listed && one->well() && !one->record.ejected();
         });
}

bool KnownServers::untried_left(const Tried& tried, Clock::time_point now) const {
  return std::ranges::any_of(
      all_, [&](const KnownServerPtr& one) { return is_preferred(*one, now) && !is_in(tried, one); });
}

std::vector<KnownServerPtr> KnownServers::to_try_again(Clock::time_point now) const {
  std::vector<KnownServerPtr> some;
  for (const KnownServerPtr& one : all_)
    if (one->listed && !one->well() && one->may_be_tried(now) && one->best() == nullptr) some.push_back(one);
  return some;
}

template <class Usable>
KnownServerPtr KnownServers::choose_of(std::uint64_t key, Usable usable) {
  std::vector<Candidate> candidates;
  candidates.reserve(all_.size());
  for (const KnownServerPtr& one : all_)
    candidates.push_back({one->identity, one->in_flight(), one->listed && usable(one)});
  const auto chosen = balancer_.choose(candidates, key);
  return chosen ? all_[*chosen] : nullptr;
}

// Chooses among the servers not yet tried; once all have been tried, among all again, but for those ejected
// if others are there.
KnownServerPtr KnownServers::choose(std::uint64_t key, const Tried& tried, Clock::time_point now) {
  if (untried_left(tried, now))
    return choose_of(
        key, [&](const KnownServerPtr& one) { return is_preferred(*one, now) && !is_in(tried, one); });
  const bool all_ejected = std::ranges::all_of(
      all_, [](const KnownServerPtr& one) { return !one->listed || one->record.ejected(); });
  return choose_of(key, [&](const KnownServerPtr& one) { return all_ejected || !one->record.ejected(); });
}

KnownServerPtr KnownServers::choose_connected(std::uint64_t key, const Tried& tried) {
  if (how_ == Balancing::consistent_hash) return nullptr;
  return choose_of(key, [&](const KnownServerPtr& one) {
    return one->well() && !one->record.ejected() && one->best() != nullptr && !is_in(tried, one);
  });
}

std::uint32_t KnownServers::judge_outliers(const OutlierOptions& options, Clock::time_point now) {
  std::vector<ServerRecord*> records;
  for (const KnownServerPtr& one : all_)
    if (one->listed) records.push_back(&one->record);
  return judge(records, options, now);
}

}  // namespace weir::rpc
