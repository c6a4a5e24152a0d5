// Why a connection is on TCP: a word in the shared file, and a sentence.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::sockets {

enum class Reason : std::uint32_t {
  none,
  other_host,
  unseen_calls,
  no_peer,
  table,
  device,
  other_conversation,
  socket_option,
  urgent_data,
  exec,
  shared_by_processes,
  passed_on,
  stdio,
  splice,
  signal_driven,
  operator_said,
  link_lost,
  nonsense,
  io_uring,
  rules,
  filtered,
  path_lost,
};
inline constexpr std::size_t reasons = static_cast<std::size_t>(Reason::path_lost) + 1;

// A sentence without its subject, the connection.
constexpr const char* text(Reason why) {
  switch (why) {
    case Reason::none:
      return "may change to RDMA";
    case Reason::other_host:
      return "leads to another host or network namespace, which --sockets-peers does not name";
    case Reason::unseen_calls:
      return "is read or written by calls that the preloaded library does not see (io_uring, static code, "
             "another process)";
    case Reason::no_peer:
      return "has a peer that does not run Weir";
    case Reason::table:
      return "found no place in the table of this user's connections";
    case Reason::device:
      return "found no RDMA device, or no room on it";
    case Reason::other_conversation:
      return "has the addresses of another connection in the table";
    case Reason::socket_option:
      return "has a socket option that TCP alone can honour";
    case Reason::urgent_data:
      return "carries urgent data";
    case Reason::exec:
      return "was kept open over exec";
    case Reason::shared_by_processes:
      return "is used by more than one process";
    case Reason::passed_on:
      return "was passed to another process";
    case Reason::stdio:
      return "became a stdio stream";
    case Reason::splice:
      return "is used with splice or a call like it";
    case Reason::signal_driven:
      return "signals that it is ready (O_ASYNC)";
    case Reason::operator_said:
      return "was put back by an operator";
    case Reason::link_lost:
      return "lost its RDMA link";
    case Reason::nonsense:
      return "was told nonsense by its peer";
    case Reason::rules:
      return "is left out by WEIR_SOCKETS_RULES";
    case Reason::io_uring:
      return "is of a process that uses io_uring, which could use it unseen";
    case Reason::filtered:
      return "is of a process that filters its system calls (seccomp)";
    case Reason::path_lost:
      return "lost the path of its RDMA packets (UDP port 4791) to the other host, while TCP goes on";
  }
  return "is on TCP";
}

}  // namespace weir::sockets
