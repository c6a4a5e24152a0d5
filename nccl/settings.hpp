// The plugin's settings, read once from the environment when NCCL first calls init().
//
// setting_lines() is the table that WEIR_NCCL_HELP=1 prints and that the manual page repeats; read_settings()
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

// How a device looks to NCCL's topology search. Unset values are the real device's.
struct DeviceShape {
  std::optional<int> speed_mbps;
  std::int16_t rail = -1;
  std::int16_t plane = -1;
  std::string pci_path;
};

// Injected faults. Probabilities apply to each isend() and irecv().
struct Faults {
  double qp_error = 0;   // our queue pair goes to the error state
  double rnr_storm = 0;  // a receive is posted `rnr_for` late, so the sender meets RNR and retries
  double delay = 0;      // a completion is reported `delay_by` late
  std::chrono::microseconds rnr_for{2000};
  std::chrono::microseconds delay_by{1000};
  int dead_device = -1;          // -1: none
  std::uint64_t dead_after = 0;  // number of operations on that device
  std::uint64_t seed = 1;

  bool any() const { return qp_error > 0 || rnr_storm > 0 || delay > 0 || dead_device >= 0; }
};

struct Settings {
  std::vector<DeviceShape> devices;  // empty: the real devices
  std::string interfaces;            // network interfaces to search, comma-separated; empty: all
  std::chrono::milliseconds ack_timeout{500};
  std::chrono::milliseconds connect_timeout{300'000};
  Faults faults;
  std::string faults_text;  // as the user wrote it, for the log
  bool help = false;
};

struct SettingLine {
  std::string_view name, values, meaning;
};
std::span<const SettingLine> setting_lines();
std::string help_text();

// Returns the value of a variable; nullptr: not set.
using Lookup = std::function<const char*(const char*)>;
// Errc::bad_setting names the variable, its value and what it may be.
rdma::Result<Settings> read_settings(const Lookup& lookup);

}  // namespace weir::nccl
