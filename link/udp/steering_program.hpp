// The program by which the kernel chooses, among the sockets that share the RoCEv2 port, the one whose
// process a datagram is for.
//
// A classic BPF program needs no privilege. It knows no names: it answers with a socket's place in the
// kernel's list of those that share the port, and that list changes when a process ends (steering.hpp). It
// finds the process by its slot, which the destination's queue pair number begins with. A message of the
// connection manager (to queue pair 1) has it in the number of the communication that it answers, and a
// request names the service that a process listens for. A request whose listener the program does not know
// goes to one of `relays` processes at random, which passes it on or refuses it: if it is repeated, it does
// not meet a stopped process again. All else goes where the kernel sends it by addresses and ports.
//
// Pure.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "link/same_host.hpp"

namespace weir::link {

struct PortPlace {
  Slot slot = 0;
  std::uint16_t place = 0;
  bool operator==(const PortPlace&) const = default;
};

// Which socket hears of requests for a service. Its number is the lower half of the service ID: port space
// and port (IBA A11.3).
struct ServicePlace {
  std::uint32_t service = 0;
  std::uint16_t place = 0;
  bool operator==(const ServicePlace&) const = default;
};

// How far a slot is shifted in the 24 bits of a queue pair number, and in the 32 of a communication's.
struct SlotShifts {
  unsigned queue_pair = 0, communication = 0;
};

inline constexpr std::size_t max_steered = 128;  // processes; further ones are left to the kernel
inline constexpr std::size_t max_steered_services = 256;
inline constexpr std::size_t relays = 8;

// What a process sends to its own port to find its place there: it comes to the socket at `place`. No RoCE
// packet is as short.
struct PlaceProbe {
  std::uint32_t magic = 0, nonce = 0;  // as are the next two: in network byte order
  std::uint16_t place = 0, copy = 0;
};
inline constexpr std::uint32_t probe_magic = 0x57506c63;

std::vector<sock_filter> steering_program(std::span<const PortPlace> places,
                                          std::span<const ServicePlace> services, SlotShifts shifts);

}  // namespace weir::link
