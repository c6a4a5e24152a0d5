// Versions that are lent: each ends when its readers have said that they are done with it, or when its time
// is over and they have not, because they never came or went away.
//
// What the publisher lent is its own again at the end: the version is withdrawn and revoked, so that a reader
// that is late gets superseded and not bytes that have changed. A reader counts once for each connection, and
// may leave a word, which means something to the two programs only.
//
// Threading: a Lease may be used from any thread, and outlives its hub. Leases: any thread; time is passed
// in.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/error.hpp"

namespace weir::tensor {

struct LeaseSettings {
  std::uint32_t readers = 1;  // how many must say that they are done
  std::chrono::nanoseconds time = std::chrono::seconds(30);
};

class Lease {
 public:
  enum class End : std::uint8_t {
    done = 1,        // all readers said so
    never_came = 2,  // the time is over, and nobody was sent the version
    left = 3,        // the time is over; it was sent, and not all have said that they are done
    closed = 4,      // the hub was closed
  };
  struct Outcome {
    End end = End::closed;
    std::vector<std::string> words;  // of those that said that they are done, in that order
  };

  Lease(std::string name, const LeaseSettings& settings)
      : name_(std::move(name)), readers_(settings.readers) {}

  const std::string& name() const { return name_; }
  std::uint64_t version() const { return version_; }
  // Waits for the end; nothing if it is not there by then.
  std::optional<Outcome> wait(std::chrono::nanoseconds timeout) const;

  // The hub's own.
  void was_sent();
  // Whether all have said so. `reader` tells connections apart.
  bool done(std::uint64_t reader, std::string word);
  // Does nothing after the first end. Without `how`: because its time is over.
  void end(std::optional<End> how = {});

 private:
  friend class Leases;
  const std::string name_;
  const std::uint32_t readers_;
  std::atomic<std::uint64_t> version_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool sent_ = false;
  std::set<std::uint64_t> done_;
  std::vector<std::string> words_;
  std::optional<End> end_;
};

// Those of one hub that have not ended.
class Leases {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `withdraw` is called for each that ended, without a lock.
  explicit Leases(std::function<void(const Lease&)> withdraw) : withdraw_(std::move(withdraw)) {}
  ~Leases();  // ends all
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  // Publishes what is lent, and returns its version's number. No reader can be done before it is entered.
  Result<std::uint64_t> lend(const std::shared_ptr<Lease>& lease, TimePoint until,
                             const std::function<Result<std::uint64_t>()>& publish);
  // A reader is done with a version. superseded: there is no such lease, or no more.
  Result<void> done(std::string_view name, std::uint64_t version, std::uint64_t reader, std::string word);
  // When the next one's time is over.
  std::optional<TimePoint> next() const;
  void end_late(TimePoint now);

 private:
  const std::function<void(const Lease&)> withdraw_;
  mutable std::mutex mutex_;
  std::multimap<TimePoint, std::shared_ptr<Lease>> by_time_;
  std::map<std::pair<std::string, std::uint64_t>, decltype(by_time_)::iterator, std::less<>> by_version_;
};

}  // namespace weir::tensor
