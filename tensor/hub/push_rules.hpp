// Who may push which names to a hub, and how much of its memory pushes may hold.
//
// By default no peer may push anything: the hub must be opened with names. A push is charged for its bytes,
// its metadata and its name, to the hub and to its connection, before memory is allocated; the charge is
// returned when the last reader of its version lets go. Pure, except for the atomic counters. Threading:
// rules are constant; a Budget may be used from any thread.
#pragma once

#include <asio/ip/address.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/error.hpp"

namespace weir::tensor {

struct PushSettings {
  std::string names = {};  // "grad/*,status": a trailing star matches the rest; empty: no pushes at all
  std::string from = {};   // "10.0.0.0/8,127.0.0.1": who may push; empty: every peer
  std::uint64_t bytes = std::uint64_t{1} << 30;             // limit for all pushed versions together
  std::uint64_t bytes_per_peer = std::uint64_t{256} << 20;  // limit for those of one connection
  // One of which nothing comes for that long ends; for a tenth of it, it makes room when others need `bytes`.
  std::chrono::milliseconds patience{10'000};
};

class PushRules {
 public:
  // bad_address if names or addresses do not parse.
  static Result<PushRules> make(const PushSettings& settings);

  bool takes_any() const { return !patterns_.empty(); }
  bool takes(std::string_view name) const;
  bool admits(const asio::ip::address& peer) const;

 private:
  struct Pattern {
    std::string text;
    bool prefix;
  };
  struct Network {
    asio::ip::address address;
    unsigned prefix_bits;
  };
  std::vector<Pattern> patterns_;
  std::vector<Network> networks_;
};

// A number of bytes in use, at most `most`.
class Budget {
 public:
  explicit Budget(std::uint64_t most) : most_(most) {}

  // Takes all of `bytes` or none.
  bool take(std::uint64_t bytes) {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    while (bytes <= most_ && used <= most_ - bytes)
      if (used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) return true;
    return false;
  }
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::uint64_t most() const { return most_; }

 private:
  const std::uint64_t most_;
  std::atomic<std::uint64_t> used_ = 0;
};

// The share of a budget that one push uses, returned by the destructor.
class Charge {
 public:
  Charge() = default;
  // False (operator bool) if the budget does not have that much left.
  Charge(const std::shared_ptr<Budget>& budget, std::uint64_t bytes)
      : budget_(budget->take(bytes) ? budget : nullptr), bytes_(bytes) {}
  Charge(Charge&& other) noexcept : budget_(std::move(other.budget_)), bytes_(other.bytes_) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Charge() {
    if (budget_ != nullptr) budget_->give_back(bytes_);
  }
  explicit operator bool() const { return budget_ != nullptr; }

 private:
  std::shared_ptr<Budget> budget_;
  std::uint64_t bytes_ = 0;
};

}  // namespace weir::tensor
