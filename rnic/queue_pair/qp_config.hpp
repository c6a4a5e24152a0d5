// How a queue pair is created, what modify sets, and what is posted to it. Each field has the verbs API's
// meaning and encoding.
#pragma once

#include <cstdint>
#include <vector>

#include "rnic/congestion/pacer.hpp"
#include "rnic/ethernet/rx_hash.hpp"
#include "rnic/queue_pair/send_queue.hpp"
#include "rnic/types.hpp"

namespace weir::rnic {

class CompletionQueue;
class SharedReceiveQueue;

struct QpCapabilities {
  std::uint32_t max_send_wr = 0, max_recv_wr = 0, max_send_sge = 0, max_recv_sge = 0, max_inline = 0;
};

// How a queue pair of type rss spreads frames.
struct RssConfig {
  RxHash hash;
  std::vector<std::uint32_t> queues;  // by the hash: indices of work queues; their number is a power of two
};

struct QpConfig {
  QpType type = QpType::rc;
  std::uint32_t pd = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  std::uint64_t xrcd = 0;  // xrc_recv: its XRC domain
  RssConfig rss;           // type rss only
  QpCapabilities caps;
  bool signal_all = false;
  std::uint32_t mtu_bytes = max_datagram_bytes;  // the port's MTU: the limit of a datagram's length
  void* cookie = nullptr;                        // the caller's object, for async events

  bool has_own_receive_queue() const { return srq == nullptr && !is_xrc() && type != QpType::rss; }
  // An XRC send queue pair only sends, an XRC receive queue pair only responds; SRQs receive and complete.
  bool is_xrc() const { return type == QpType::xrc_send || type == QpType::xrc_recv; }
};

// How a queue pair reaches its peer: decided at RTR, fixed until reset.
enum class Via : std::uint8_t { same_host, packets };
struct Path {
  Via via = Via::same_host;
  std::uint32_t mtu_bytes = 1024;
  std::uint32_t send_psn = 0, receive_psn = 0;  // each the first PSN
  // The rest is for packets only.
  Gid source{}, destination{};
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint32_t interface = 0;  // as of PacketRoute
  std::uint64_t process = 0;    // as of PacketRoute
  bool ecn_capable = true;  // a reliable connection's packets say so, unless the traffic class says something
};

// What modify sets; each field has the verbs API's meaning and encoding.
struct QpAttributes {
  std::uint32_t access = 0;
  Qpn destination{};
  Path path{};
  std::uint32_t qkey = 0;
  std::uint8_t timeout = 0;  // 4.096 us * 2^timeout; 0: no limit
  std::uint8_t retry_cnt = 0;
  std::uint8_t rnr_retry = 0;      // 7: no limit
  std::uint8_t min_rnr_timer = 0;  // code of rnr_timer_ns()
  std::uint8_t max_rd_atomic = 1, max_dest_rd_atomic = 1;
  RateLimit rate{};
  bool sqd_event = false;  // on the transition to SQD: report when the send queue has drained
};

// What post_send needs to know of a work request besides its payload.
struct SendRequest {
  std::uint64_t wr_id = 0;
  SendOpcode opcode = SendOpcode::send;
  std::uint32_t flags = 0;  // send_flag::
  std::uint32_t imm_be = 0;
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t remote_srqn = 0;  // XRC
  DatagramAddress datagram{};
  std::uint32_t path_kbps = 0;  // UD: the static rate of the path; 0: none
  AtomicOperands atomic{};
  WindowBinding binding{};
};

enum class PostResult : std::uint8_t {
  ok,
  full,
  bad_state,
  too_many_sges,
  too_long_inline,
  bad_opcode,
  no_address
};

}  // namespace weir::rnic
