// Queue pair 1 of this host's addresses, for the connection manager: datagrams of management to and from
// other hosts, and other users of this one. The implementation is PacketNetwork's; librdmacm.so.1 calls it
// through this interface.
//
// Threading: all functions from any thread; the handler runs on the link's thread, one call at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "link/same_host.hpp"
#include "link/udp/port_probe.hpp"
#include "rnic/counters.hpp"

namespace weir::verbs {

// A communication's number, which the answers to it carry, begins with the slot of the process that chose it:
// by this the port's packets find it (link/udp/steering_program.hpp).
inline constexpr unsigned communication_slot_shift = 22;

using GidBytes = std::array<std::uint8_t, 16>;

// A datagram's source and destination and, between users of this host, the number of the other user's
// process; 0: by UDP.
struct ManagementRoute {
  GidBytes source{}, destination{};
  std::uint64_t process = 0;
};

class ManagementPort {
 public:
  using Handler = std::function<void(const ManagementRoute& came, std::span<const std::byte> mad)>;

  // From now on packets arrive; after one success, further calls succeed at once. The error is fit to print.
  virtual link::Result<void> open_port() = 0;
  // Before open_port().
  virtual void on_management(Handler handler) = 0;
  // May be lost on its way.
  virtual void send_management(const ManagementRoute& to, std::span<const std::byte> mad) = 0;
  // The same, by UDP, from a socket that hears if nobody has the port there; nullptr: it was not sent.
  virtual std::unique_ptr<link::PortProbe> ask(const ManagementRoute& to, std::span<const std::byte> mad) = 0;
  // Whether a process of our user and runtime directory has that slot, as of a moment ago. Strangers name
  // slots as they like: neither this nor the next costs a system call for each of their messages.
  virtual bool is_occupied(link::Slot slot) = 0;
  // Whether to connect to that process, or look for it, now: at most so often.
  virtual bool may_dial(link::Slot slot) = 0;
  // A message was dropped unanswered.
  virtual void count_dropped(rnic::Dropped why) = 0;
  // Whether that is an address of this host.
  virtual bool is_ours(const GidBytes& address) = 0;

  // Requests from other hosts for that service (the lower half of its ID) are for this process, from the
  // packets' way in on. After open_port(); each call needs its own listens_no_more().
  virtual void listens(std::uint32_t service) = 0;
  virtual void listens_no_more(std::uint32_t service) = 0;

  // Offers a service that programs of other users of this host find by name. False: another process has it.
  virtual bool serve(const std::string& service) = 0;
  virtual void stop_serving(const std::string& service) = 0;
  // The other user whose program serves it, if one does.
  virtual std::optional<unsigned> other_user_serving(const std::string& service) = 0;
  // Finds the process of another user that serves it (0: none); `found` runs on the link's thread. Returns
  // false if no such process can be asked; then `found` does not run.
  virtual bool find_server(const std::string& service, std::function<void(std::uint64_t process)> found) = 0;
  // On the link's thread, once for each that has ended. Before it is needed.
  virtual void on_process_gone(std::function<void(std::uint64_t process)> handler) = 0;
  // Whether that address is reached by packets at all: not ours (unless `weir run --packets`), of a kind they
  // carry, and not switched off.
  virtual bool leads_to(const GidBytes& destination) = 0;
  // The largest path MTU of packets from there (an ibv_mtu).
  virtual std::uint8_t path_mtu(const GidBytes& source) = 0;
  // The interface that has this link-local address of ours, without which its peers' addresses are ambiguous;
  // 0: another kind of address.
  virtual std::uint32_t scope_of(const GidBytes& own) = 0;

 protected:
  ~ManagementPort() = default;
};

}  // namespace weir::verbs
