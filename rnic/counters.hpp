// Counts of what a queue pair did: words in the shared segment that other processes may read at any time.
//
// Each word has one writer at a time, named beside its group, and is written by a plain load, add and store:
// no locked instruction and no fence on the data path. Each group has its own cache lines, so that counting
// shares no line with another thread's work. The exceptions are `shared_add`s, where several threads may
// count at once; all of them are next to a system call or a lost message, which costs more. A reader sees
// each word whole, and each a little older or newer than the others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "rnic/types.hpp"

namespace weir::rnic {

class Counter {
 public:
  void add(std::uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void shared_add(std::uint64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t read() const { return value_.load(std::memory_order_relaxed); }
  void clear() { value_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// What is counted separately, and which way its payload goes: from the requester, or back to it.
enum class OperationKind : std::uint8_t { send, write, read, atomic, local };
inline constexpr std::size_t operation_kinds = 5;
enum class PayloadGoes : std::uint8_t { out, back };

struct CountedAs {
  OperationKind kind;
  PayloadGoes payload;
};
inline constexpr std::array<CountedAs, 16> counted_as = {{
    {OperationKind::write, PayloadGoes::out},    // rdma_write
    {OperationKind::write, PayloadGoes::out},    // rdma_write_with_imm
    {OperationKind::send, PayloadGoes::out},     // send
    {OperationKind::send, PayloadGoes::out},     // send_with_imm
    {OperationKind::read, PayloadGoes::back},    // rdma_read
    {OperationKind::atomic, PayloadGoes::back},  // compare_and_swap
    {OperationKind::atomic, PayloadGoes::back},  // fetch_and_add
    {OperationKind::local, PayloadGoes::out},    // local_invalidate
    {OperationKind::local, PayloadGoes::out},    // bind_window
    {OperationKind::send, PayloadGoes::out},     // send_with_invalidate
    {},
    {},
    {},
    {},
    {},
    {OperationKind::write, PayloadGoes::out},  // atomic_write
}};
static_assert(static_cast<std::size_t>(SendOpcode::atomic_write) == 15);

struct QpCounters {
  // Written by the requester, under the send lock. Operations count once they completed without an error.
  alignas(64) std::array<Counter, operation_kinds> operations;
  std::array<Counter, 2> payload;  // by PayloadGoes
  Counter doorbells;               // of the send queue

  // Written by the initiator that plays our responder: the same counts for its operations, as it finishes
  // each here. Bytes that "come back" to it leave from here.
  alignas(64) std::array<Counter, operation_kinds> served;
  std::array<Counter, 2> served_payload;
  Counter receive_wakeups;  // completions of receives that woke a completion channel (shared_add)

  // Written by the requester, when it cannot go straight on.
  alignas(64) Counter rnrs;   // times a message found no receive posted, and the queue parked
  Counter no_responses;       // times the peer did not answer, and the queue parked
  Counter retries;            // times the parked message was retried
  Counter send_errors;        // WRs completed with an error of their own
  Counter sends_flushed;      // WRs flushed after a failed one, or because the queue pair was moved to ERR
  Counter own_wakeups;        // other completions that woke a completion channel (shared_add)
  Counter datagrams_dropped;  // UD, raw packets: no receive was posted (shared_add)
  Counter multicasts_sent;    // UD: how many of the sends went to a group
  // How many of send_errors have this status.
  Counter retries_exceeded, rnr_retries_exceeded, remote_access_errors, remote_invalid_requests;

  // Written by the poller, under the CQ's lock: of the send CQ, then of the receive CQ.
  alignas(64) Counter send_completions;
  alignas(64) Counter receives;  // completed without an error
  Counter receive_errors;
  Counter receives_flushed;
  Counter datagram_bytes;     // UD: their payload, without the GRH; raw packets: whole frames
  Counter datagrams;          // how many of the receives are on UD and raw packet queue pairs
  Counter multicasts;         // UD: how many of these came to a group
  Counter receive_doorbells;  // counted by the thread that posts receives, under the receive lock

  // If the peer is on another host. Packets sent: those of the requester and of UD, under the send lock.
  alignas(64) Counter requests_out;  // packets, including those sent again
  Counter requests_again;            // packets sent again
  Counter naks_in;                   // refusals received, and those implied by a later answer
  Counter rnr_naks_in;               // how many of these said that no receive was posted there
  Counter answers_unwanted;          // answers to nothing outstanding: late, or forged
  // Written by the thread that receives packets, under the adapter's lock.
  alignas(64) Counter packets_in;  // intact packets for this queue pair
  Counter answers_out;             // acknowledgements, refusals, READ and atomic responses
  Counter answers_again;           // how many of these had been given before
  Counter naks_out, rnr_naks_out;  // how many of these are refusals
  Counter requests_repeated;       // requests that had arrived before
  Counter requests_dropped;        // out of order, from elsewhere, or while the queue pair was busy
  Counter marked_in;               // how many of packets_in a switch on the way had marked: congestion (ECN)
  Counter notifications_out;       // sent to tell the sender of marked packets (CNP)
  Counter notifications_in;        // received from the peer, for the same reason

  // An operation is done, at `target` if a connected peer answers it. This is all that the data path counts
  // for a WR.
  void count_done(QpCounters* target, SendOpcode opcode, std::uint32_t bytes) {
    const CountedAs as = counted_as[static_cast<std::size_t>(opcode) % counted_as.size()];
    operations[static_cast<std::size_t>(as.kind)].add(1);
    payload[static_cast<std::size_t>(as.payload)].add(bytes);
    if (target != nullptr) target->count_served(opcode, bytes);
  }
  void count_served(SendOpcode opcode, std::uint64_t bytes) {
    const CountedAs as = counted_as[static_cast<std::size_t>(opcode) % counted_as.size()];
    served[static_cast<std::size_t>(as.kind)].add(1);
    served_payload[static_cast<std::size_t>(as.payload)].add(bytes);
  }

  // A WR of the send queue completed with that error.
  void count_failed(WcStatus status) {
    if (status == WcStatus::wr_flush_err) return sends_flushed.add(1);
    send_errors.add(1);
    switch (status) {
      case WcStatus::retry_exc_err:
        return retries_exceeded.add(1);
      case WcStatus::rnr_retry_exc_err:
        return rnr_retries_exceeded.add(1);
      case WcStatus::rem_access_err:
        return remote_access_errors.add(1);
      case WcStatus::rem_inv_req_err:
        return remote_invalid_requests.add(1);
      default:
        return;
    }
  }

  // Visits every counter, in a fixed order, for callers that sum or clear them.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto* group : {&operations, &served})
      for (Counter& one : *group) visit(one);
    for (auto* group : {&payload, &served_payload})
      for (Counter& one : *group) visit(one);
    for (Counter* one : {&doorbells,
                         &receive_wakeups,
                         &rnrs,
                         &no_responses,
                         &retries,
                         &send_errors,
                         &sends_flushed,
                         &own_wakeups,
                         &datagrams_dropped,
                         &multicasts_sent,
                         &retries_exceeded,
                         &rnr_retries_exceeded,
                         &remote_access_errors,
                         &remote_invalid_requests,
                         &send_completions,
                         &receives,
                         &receive_errors,
                         &receives_flushed,
                         &datagram_bytes,
                         &datagrams,
                         &multicasts,
                         &receive_doorbells,
                         &requests_out,
                         &requests_again,
                         &naks_in,
                         &rnr_naks_in,
                         &answers_unwanted,
                         &packets_in,
                         &answers_out,
                         &answers_again,
                         &naks_out,
                         &rnr_naks_out,
                         &requests_repeated,
                         &requests_dropped,
                         &marked_in,
                         &notifications_out,
                         &notifications_in})
      visit(*one);
  }
};
static_assert(sizeof(QpCounters) == 9 * 64);

// Why a packet from another host was dropped without an answer. What is counted here reached no queue pair.
enum class Dropped : std::uint8_t {
  malformed,       // not RoCEv2 of ours, or its address and its queue pair number do not go together
  wrong_icrc,      // changed on its way, or by NAT
  no_process,      // for a queue pair number of no process here
  no_queue_pair,   // of no queue pair of that process
  wrong_source,    // not from the peer of that queue pair
  wrong_qkey,      // UD
  outside_window,  // its PSN is further from the expected one than a peer can be
  over_budget,     // its source, or all sources, send more than is looked at
  unproved,        // a first request for a connection, while many unproved ones wait
  wrong_key,       // the sender has not our wire key, or it was changed on its way
};
inline constexpr std::size_t drop_reasons = 10;

// What a process shows to its observers.
struct ProcessCounters {
  // Random, and never another process's: an observer that stores counts knows by it which process they are
  // of.
  std::atomic<std::uint64_t> identity{0};
  std::atomic<std::uint32_t> qps_end{0};  // no queue pair has, or had, this index or a higher one
  // Odd while a queue pair's counters move from their place to `retired`: then a reader reads again.
  alignas(64) std::atomic<std::uint32_t> moving{0};
  // Counts of destroyed queue pairs, and receives of XRC SRQs that came through other processes' queue pairs
  // (shared_add).
  QpCounters retired;
  // By Dropped, of this process (shared_add); and what the kernel did not hand over, because its filter turns
  // strangers away (link/udp/arrival_filter.hpp) or the receive buffer was full.
  alignas(64) std::array<Counter, drop_reasons> dropped;
  std::atomic<std::uint64_t> not_received{0};
  // How long the port had packets to send and sent none, in microseconds: it was paused.
  std::atomic<std::uint64_t> transmit_wait_us{0};

  void count_drop(Dropped why, std::uint64_t packets = 1) {
    if (packets != 0) dropped[static_cast<std::size_t>(why)].shared_add(packets);
  }
};

}  // namespace weir::rnic
