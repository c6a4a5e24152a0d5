// What process_test asks of link_peer, and how it starts a peer.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace weir::link::peer {

inline constexpr std::uint16_t echo = 1;
inline constexpr std::uint16_t never_reply = 2;
inline constexpr std::uint16_t fork_lingering_child = 3;   // replies with its pid
inline constexpr std::uint16_t clone_lingering_child = 4;  // the same, past the fork handlers
inline constexpr std::uint16_t fork_exiting_child = 5;     // one that runs the destructors and is waited for

}  // namespace weir::link::peer

namespace weir::link {
inline pid_t raw_fork() { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }
}  // namespace weir::link
