// Decides when an injected fault strikes: dice of one connection, reproducible from the seed.
//
// Threading: one thread, but a device's switch is shared by its connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "nccl/settings.hpp"

namespace weir::nccl {

// The fault state of one device that NCCL sees.
struct DeviceSwitch {
  std::atomic<std::uint64_t> operations{0};  // counted only if the device is to die
};

class FaultDice {
 public:
  FaultDice() = default;  // nothing ever fails
  // `ordinal` distinguishes the connections of one process.
  FaultDice(const Faults& faults, std::uint64_t ordinal, int device,
            std::shared_ptr<DeviceSwitch> device_switch)
      : faults_(faults),
        active_(faults.any()),
        dies_(faults.dead_device == device),
        state_((faults.seed + 1) * 0x9e3779b97f4a7c15 ^ (ordinal + 1) * 0xbf58476d1ce4e5b9),
        switch_(std::move(device_switch)) {}

  bool active() const { return active_; }
  const Faults& faults() const { return faults_; }
  // Counts one operation of the device; returns true if the device has died.
  bool device_dies() {
    return dies_ && switch_->operations.fetch_add(1, std::memory_order_relaxed) >= faults_.dead_after;
  }
  bool roll(double chance) {
    if (chance <= 0) return false;
    return static_cast<double>(next() >> 11) * 0x1p-53 < chance;
  }

 private:
  // splitmix64.
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  Faults faults_;
  bool active_ = false;
  bool dies_ = false;
  std::uint64_t state_ = 0;
  std::shared_ptr<DeviceSwitch> switch_;
};

}  // namespace weir::nccl
