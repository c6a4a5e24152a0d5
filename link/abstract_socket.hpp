// Unix sockets with names in the abstract space: a name belongs to its network namespace, whatever the file
// system and the user; one process holds it, and it disappears with that process.
//
// No state; safe from any thread. Nothing here waits.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::link {

// SOCK_SEQPACKET, not listening yet. The error is an errno: EADDRINUSE, or there are no such names.
std::expected<UniqueFd, int> hold_name(const std::string& name);
// The error: ECONNREFUSED, when nobody listens there; EAGAIN, when too many wait to be accepted.
std::expected<UniqueFd, int> connect_to_name(const std::string& name);

// The names that begin so and that processes of this user hold, as the kernel tells whose they are. Empty,
// too, where it does not tell (before Linux 5.3, or without unix_diag).
std::vector<std::string> names_of_user(uid_t user, std::string_view prefix);

// Who holds the most of the names that begin so, our own user's processes aside.
struct NameHolder {
  uid_t user = 0;
  pid_t pid = 0;  // 0: it does not listen there, or is not visible
  std::size_t names = 0;
};
// nullopt: nobody does, or the kernel does not tell.
std::optional<NameHolder> largest_other_holder(uid_t own, std::string_view prefix);

inline constexpr char slot_name_prefix[] = "weir-slot-";
// "weir-slot-7": held by the process in that slot.
std::string name_of_slot(unsigned slot);

// A process as the kernel vouches for it: a connecting socket sees the listener, the accepted one sees the
// process that connected, each as it was then.
struct Identity {
  uid_t user = 0;
  pid_t pid = 0;             // 0: not visible in our pid namespace
  std::uint64_t unique = 0;  // no other process has it until the next boot; 0: not told (before Linux 6.9)
};
std::expected<Identity, int> identity_of_peer(int socket);

// A pidfd of that process, whatever its number means by now. The error: ENOPROTOOPT, before Linux 6.5; before
// 6.16 others, when it has ended.
std::expected<UniqueFd, int> pidfd_of_peer(int socket);

// All users that our user namespace does not map look like this one.
inline constexpr uid_t nobody_known = 65534;

// Whether two sockets' ends are one process's. A process may have changed its user in between, and a pid may
// have passed to another process while a child kept the first one's socket.
bool same_process(const Identity& one, const Identity& other);

}  // namespace weir::link
