// Which process of its destination a packet is for, as link/udp/steering_program.hpp finds it for a datagram:
// the slot that a queue pair number begins with, or the number of the communication that a message of the
// connection manager answers; the service that a request names. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "link/stream/stream_frame.hpp"
#include "wire/mad.hpp"

namespace weir::verbs {

// From the BTH on. nullopt: all members of a group, or no process.
std::optional<link::StreamTarget> target_of(std::span<const std::byte> packet);
// Of the connection manager.
bool is_management(std::span<const std::byte> packet);

// A message of management that nobody acts on, here or on other NICs (a class that vendors have for
// themselves): by UDP it comes to the process in that slot, and shows that something comes.
std::array<std::byte, wire::mad_bytes> sign_of_life(link::Slot to);
bool is_sign_of_life(std::span<const std::byte> packet);

}  // namespace weir::verbs
