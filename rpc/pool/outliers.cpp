#include "rpc/pool/outliers.hpp"

#include <algorithm>
#include <cmath>

namespace weir::rpc {
namespace {

using Clock = ServerRecord::Clock;

// A record as it was in the interval that ends.
struct Judged {
  ServerRecord* record;
  double well;  // share of its calls
};

class Judgement {
 public:
  Judgement(const std::vector<ServerRecord*>& records, const OutlierOptions& options, Clock::time_point now)
      : options_(options), now_(now), servers_(records.size()) {
    for (ServerRecord* one : records) {
      ejected_ += one->ejected() ? 1 : 0;
      const std::uint32_t calls = one->well + one->failed;
      if (calls > 0 && calls >= options.min_calls)
        judged_.push_back({one, static_cast<double>(one->well) / calls});
      one->well = one->failed = 0;
    }
  }

  void by_deviation() {
    if (options_.deviations <= 0 || judged_.size() < options_.min_servers) return;
    const auto count = static_cast<double>(judged_.size());
    double mean = 0, variance = 0;
    for (const Judged& one : judged_) mean += one.well / count;
    for (const Judged& one : judged_) variance += (one.well - mean) * (one.well - mean) / count;
    const double least = mean - options_.deviations * std::sqrt(variance);
    eject_if([least](const Judged& one) { return one.well < least; });
  }
  void by_failures() {
    eject_if([this](const Judged& one) { return 1 - one.well >= options_.failures; });
  }
  std::uint32_t ejected_now() const { return ejected_now_; }

 private:
  template <class Condition>
  void eject_if(Condition condition) {
    for (const Judged& one : judged_) {
      if (ejected_ > 0 && ejected_ >= options_.max_ejected * static_cast<double>(servers_)) return;
      if (one.record->ejected() || !condition(one)) continue;
      one.record->ejected_at = now_;
      ++one.record->ejections;
      ++ejected_;
      ++ejected_now_;
    }
  }

  const OutlierOptions& options_;
  const Clock::time_point now_;
  const std::size_t servers_;
  std::vector<Judged> judged_;
  std::uint32_t ejected_ = 0, ejected_now_ = 0;
};

void bring_back(ServerRecord& record, const OutlierOptions& options, Clock::time_point now) {
  if (!record.ejected()) {
    if (record.ejections > 0) --record.ejections;
    return;
  }
  const std::chrono::milliseconds most = std::max(options.base_ejection, options.max_ejection);
  // Not the product, which could overflow.
  const bool at_most = record.ejections > most / std::max(options.base_ejection, decltype(most)(1));
  const auto time = at_most ? most : options.base_ejection * record.ejections;
  if (now >= *record.ejected_at + time) record.ejected_at.reset();
}

}  // namespace

bool counts_against_server(Errc code) {
  switch (code) {
    case Errc::overloaded:
    case Errc::unreachable:
    case Errc::connection_lost:
    case Errc::deadline_exceeded:
    case Errc::bad_reply:
      return true;
    default:
      return false;
  }
}

std::uint32_t judge(const std::vector<ServerRecord*>& records, const OutlierOptions& options,
                    Clock::time_point now) {
  Judgement judgement(records, options, now);
  judgement.by_deviation();
  judgement.by_failures();
  for (ServerRecord* one : records) bring_back(*one, options, now);
  return judgement.ejected_now();
}

}  // namespace weir::rpc
