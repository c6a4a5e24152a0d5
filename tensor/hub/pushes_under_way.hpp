// Pushes that have begun and are not whole: how long each may stand still, and which of them ends when the
// hub's budget has no room for another.
//
// A push is charged to the hub's budget from its first message, and its bytes may never come. So one of which
// nothing comes ends after `patience`; and when the budget is used up, the push that has stood still for the
// longest time makes room, if that is more than `undisturbed`. Where a link cannot see bytes arrive (RDMA), a
// push has a second more for each 64 MiB. Pushes of one address may hold `bytes_per_source`, so that others
// always find room.
//
// Pure: time is passed in. Threading: the hub's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tensor/error.hpp"

namespace weir::tensor {

class PushesUnderWay {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Limits {
    std::uint64_t bytes_per_source = ~std::uint64_t{0};
    std::size_t pushes = 4096;
    std::chrono::milliseconds patience{10'000};
    std::chrono::milliseconds undisturbed{1'000};
  };
  struct Push {
    std::string source;
    std::uint64_t bytes = 0;
    // How many have arrived; nothing if that cannot be seen.
    std::function<std::optional<std::uint64_t>()> arrived;
    // Ends the push, and with that its Stay.
    std::function<void(Error)> end;
  };

 private:
  struct Entry {
    Push push;
    TimePoint since;  // something arrived, or it began
    std::uint64_t arrived = 0;
  };
  using Entries = std::list<Entry>;

 public:
  // A push is under way until this is destroyed.
  class Stay {
   public:
    Stay() = default;
    Stay(PushesUnderWay& of, Entries::iterator at) : of_(&of), at_(at) {}
    Stay(Stay&& other) noexcept : of_(std::exchange(other.of_, nullptr)), at_(other.at_) {}
    Stay& operator=(Stay&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~Stay() {
      if (of_ != nullptr) of_->remove(at_);
    }

   private:
    PushesUnderWay* of_ = nullptr;
    Entries::iterator at_;
  };

  explicit PushesUnderWay(const Limits& limits) : limits_(limits) {}
  PushesUnderWay(const PushesUnderWay&) = delete;
  PushesUnderWay& operator=(const PushesUnderWay&) = delete;

  // What pushes of this source hold.
  std::uint64_t bytes_of(const std::string& source) const;
  bool has_share_for(const std::string& source, std::uint64_t bytes) const;
  bool full() const { return entries_.size() >= limits_.pushes; }
  Stay enter(Push push, TimePoint now);
  // Ends one that has stood still. False: there is none.
  bool make_room(TimePoint now);
  // Call now and then while there are any.
  void end_late(TimePoint now);
  bool empty() const { return entries_.empty(); }
  const Limits& limits() const { return limits_; }

 private:
  void remove(Entries::iterator at);
  // Looks whether anything has arrived; returns for how long nothing has, beyond what its size excuses.
  static std::chrono::nanoseconds still(Entry& entry, TimePoint now);

  const Limits limits_;
  Entries entries_;
  std::map<std::string, std::uint64_t> bytes_;
};

}  // namespace weir::tensor
