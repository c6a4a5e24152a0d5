#include "tensor/hub/leases.hpp"

#include <algorithm>
#include <utility>

namespace weir::tensor {

std::optional<Lease::Outcome> Lease::wait(std::chrono::nanoseconds timeout) const {
  const auto most = std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(24 * 365));
  std::unique_lock lock(mutex_);
  if (!ended_.wait_for(lock, most, [this] { return end_.has_value(); })) return std::nullopt;
  return Outcome{*end_, words_};
}

void Lease::was_sent() {
  const std::lock_guard lock(mutex_);
  sent_ = true;
}

bool Lease::done(std::uint64_t reader, std::string word) {
  const std::lock_guard lock(mutex_);
  if (done_.insert(reader).second) words_.push_back(std::move(word));
  return done_.size() >= readers_;
}

void Lease::end(std::optional<End> how) {
  const std::lock_guard lock(mutex_);
  if (end_) return;
  end_ = how.value_or(sent_ ? End::left : End::never_came);
  ended_.notify_all();
}

Leases::~Leases() {
  for (const auto& [until, lease] : by_time_) lease->end(Lease::End::closed);
}

Result<std::uint64_t> Leases::lend(const std::shared_ptr<Lease>& lease, TimePoint until,
                                   const std::function<Result<std::uint64_t>()>& publish) {
  const std::lock_guard lock(mutex_);
  const Result<std::uint64_t> version = publish();
  if (!version) return version;
  lease->version_ = *version;
  by_version_.emplace(std::pair(lease->name(), *version), by_time_.emplace(until, lease));
  return version;
}

// The word of the last reader is there before the lease ends.
Result<void> Leases::done(std::string_view name, std::uint64_t version, std::uint64_t reader,
                          std::string word) {
  std::shared_ptr<Lease> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_version_.find(std::pair(std::string(name), version));
    if (found == by_version_.end())
      return fail(Errc::superseded, "version " + std::to_string(version) + " of '" + std::string(name) +
                                        "' is not lent, or not any more");
    std::shared_ptr<Lease> lease = found->second->second;
    if (!lease->done(reader, std::move(word))) return {};
    by_time_.erase(found->second);
    by_version_.erase(found);
    ended = std::move(lease);
  }
  withdraw_(*ended);
  ended->end(Lease::End::done);
  return {};
}

std::optional<Leases::TimePoint> Leases::next() const {
  const std::lock_guard lock(mutex_);
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

void Leases::end_late(TimePoint now) {
  std::vector<std::shared_ptr<Lease>> late;
  {
    const std::lock_guard lock(mutex_);
    const auto end = by_time_.upper_bound(now);
    for (auto each = by_time_.begin(); each != end; ++each) {
      by_version_.erase(std::pair(each->second->name(), each->second->version()));
      late.push_back(each->second);
    }
    by_time_.erase(by_time_.begin(), end);
  }
  for (const std::shared_ptr<Lease>& each : late) {
    withdraw_(*each);
    each->end();
  }
}

}  // namespace weir::tensor
