// What can be set about the plugin, read once from the environment when NCCL first calls init().
//
// The table of setting_lines() is what WEIR_NCCL_HELP=1 prints and the manual page tells; read_settings()
// knows no other names. Values; no threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/error.hpp"

namespace weir::nccl {

// How a device looks to NCCL's topology search. What is not said is as the device has it.
struct DeviceShape {
  std::optional<int> speed_mbps;
  std::int16_t rail = -1;
  std::int16_t plane = -1;
  std::string pci_path;
};

// Failures made on purpose. Probabilities are of each isend() and irecv().
struct Faults {
  double qp_error = 0;   // our queue pair goes to the error state
  double rnr_storm = 0;  // a receive is posted `rnr_for` late: the sender finds none and tries again
  double delay = 0;      // a completion is shown `delay_by` late
  std::chrono::microseconds rnr_for{2000};
  std::chrono::microseconds delay_by{1000};
  int dead_device = -1;          // -1: none
  std::uint64_t dead_after = 0;  // operations on that device
  std::uint64_t seed = 1;

  bool any() const { return qp_error > 0 || rnr_storm > 0 || delay > 0 || dead_device >= 0; }
};

struct Settings {
  std::vector<DeviceShape> devices;  // empty: what the machine has
  std::string interfaces;            // which network interfaces to look at, comma-separated; empty: all
  std::chrono::milliseconds ack_timeout{500};
  std::chrono::milliseconds connect_timeout{300'000};
  Faults faults;
  std::string faults_text;  // as it was given
  bool help = false;
};

struct SettingLine {
  std::string_view name, values, meaning;
};
std::span<const SettingLine> setting_lines();
std::string help_text();

// The value of a variable; nullptr: not set.
using Lookup = std::function<const char*(const char*)>;
// Errc::bad_setting names the variable, what it says and what it may say.
rdma::Result<Settings> read_settings(const Lookup& lookup);

}  // namespace weir::nccl
