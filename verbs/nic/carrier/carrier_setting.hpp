// By what packets go to other hosts: UDP, which is RoCEv2; TCP streams (link/stream); or one of the two for
// each path, chosen by what passes there.
#pragma once

#include <cstdint>
#include <optional>

#include "link/same_host.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {

inline constexpr char carrier_variable[] = "WEIR_CARRIER";

struct CarrierSetting {
  bool automatic = false;  // UDP, until packets go unanswered
  std::uint16_t port = wire::roce_port;
};

// "udp", "tcp" or "auto"; the last two may name a port: "tcp:7000". nullopt: UDP alone, as where `setting` is
// nullptr or empty.
link::Result<std::optional<CarrierSetting>> read_carrier(const char* setting);

}  // namespace weir::verbs
