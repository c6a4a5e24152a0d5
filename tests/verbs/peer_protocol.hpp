// What the process tests send to the peer program, over the socket that it has as descriptor 3.
#pragma once

#include "side.hpp"

namespace weir::verbs_test {

inline constexpr int control_fd = 3;

enum class Order : std::uint32_t {
  open,      // kind, length: makes the side; replies its address
  connect,   // peer, patience: brings the queue pair up
  fill,      // seed: content of the memory
  cut,       // length: cuts the file behind the memory to it
  sum,       // length: replies the checksum of the beginning of the memory
  receive,   // count, length: posts that many receives, one behind the other in memory
  run,       // opcode, length, peer: one request; replies its status
  reap,      // count: waits for that many completions; replies how many succeeded and the first other status
  write_on,  // length, peer: writes again and again until one fails; replies its status
  send_on,   // length, peer: numbered SENDs again and again, the number in each immediate
  serve,     // length: keeps receives posted for ever
  echo,      // count, length: answers each message with one, asleep on the channel in between
  send_frames,  // count: raw packets, the last bytes of whose source addresses count up from 0; replies as
                // reap
  destroy,      // destroys everything in order
  leave,        // returns from main
  last_word,    // peer: posts a datagram to that queue pair and returns from main at once, having polled
                // nothing
  // XRC (xrc_side.hpp)
  xrc_join,     // kind, count: the descriptor of the domain's file, seed: oflags; makes the side; replies the
                // address of its SRQ, and what was wrong with the domain
  xrc_receive,  // count, length: posts that many receives to the SRQ, one behind the other in memory
  xrc_reap,  // count, length: waits for that many completions; replies how many succeeded, the queue pair of
             // the last, and the checksum of the beginning of the memory
  xrc_target,   // makes a queue pair that answers; replies its number
  xrc_connect,  // peer: brings it up
  xrc_open,     // peer: opens that queue pair instead
  xrc_close,    // destroys it, or the handle on it
  xrc_sender,   // makes a queue pair that sends; replies its number
  xrc_send_on,  // count: the queue pair it is for, length, peer: the SRQ; numbered SENDs again and again, the
                // number in each immediate, until one fails
  xrc_serve,    // length: keeps receives posted for ever
  xrc_quit,     // destroys everything in order
};

struct Request {
  Order order{};
  MemoryKind kind{};
  std::uint32_t count = 0;
  std::uint32_t seed = 0;
  std::uint64_t length = 0;
  ibv_wr_opcode opcode{};
  SideAddress peer = {};
  Patience patience = {};
};

struct Reply {
  int error = 0;  // errno of a call that failed
  SideAddress address = {};
  std::uint64_t checksum = 0;
  std::uint32_t succeeded = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;  // the first that is not success
};

}  // namespace weir::verbs_test
