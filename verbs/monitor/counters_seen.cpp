#include "verbs/monitor/counters_seen.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace weir::verbs {
namespace {

CountersSeen seen(const rnic::QpCounters& from) {
  using Kind = rnic::OperationKind;
  using Goes = rnic::PayloadGoes;
  const auto of = [](const auto& group, auto which) { return group[static_cast<std::size_t>(which)].read(); };
  return {.sends = of(from.operations, Kind::send),
          .writes = of(from.operations, Kind::write),
          .reads = of(from.operations, Kind::read),
          .atomics = of(from.operations, Kind::atomic),
          .local_operations = of(from.operations, Kind::local),
          .sends_served = of(from.served, Kind::send),
          .writes_served = of(from.served, Kind::write),
          .reads_served = of(from.served, Kind::read),
          .atomics_served = of(from.served, Kind::atomic),
          .bytes_out = of(from.payload, Goes::out),
          .bytes_back = of(from.payload, Goes::back),
          .served_bytes_in = of(from.served_payload, Goes::out),
          .served_bytes_out = of(from.served_payload, Goes::back),
          .datagram_bytes_in = from.datagram_bytes.read(),
          .datagrams_in = from.datagrams.read(),
          .multicasts_out = from.multicasts_sent.read(),
          .multicasts_in = from.multicasts.read(),
          .doorbells = from.doorbells.read(),
          .receive_doorbells = from.receive_doorbells.read(),
          .send_completions = from.send_completions.read(),
          .receives = from.receives.read(),
          .own_wakeups = from.own_wakeups.read(),
          .receive_wakeups = from.receive_wakeups.read(),
          .rnrs = from.rnrs.read(),
          .no_responses = from.no_responses.read(),
          .retries = from.retries.read(),
          .send_errors = from.send_errors.read(),
          .receive_errors = from.receive_errors.read(),
          .sends_flushed = from.sends_flushed.read(),
          .receives_flushed = from.receives_flushed.read(),
          .datagrams_dropped = from.datagrams_dropped.read(),
          .retries_exceeded = from.retries_exceeded.read(),
          .rnr_retries_exceeded = from.rnr_retries_exceeded.read(),
          .remote_access_errors = from.remote_access_errors.read(),
          .remote_invalid_requests = from.remote_invalid_requests.read(),
          .packets_out = from.requests_out.read() + from.answers_out.read(),
          .packets_in = from.packets_in.read(),
          .packets_resent = from.requests_again.read() + from.answers_again.read(),
          .packets_repeated = from.requests_repeated.read(),
          .naks_in = from.naks_in.read(),
          .naks_out = from.naks_out.read(),
          .rnr_naks_in = from.rnr_naks_in.read(),
          .rnr_naks_out = from.rnr_naks_out.read(),
          .packets_dropped = from.requests_dropped.read() + from.answers_unwanted.read(),
          .packets_marked = from.marked_in.read(),
          .cnps_in = from.notifications_in.read(),
          .cnps_out = from.notifications_out.read(),
          .dropped_malformed = 0,
          .dropped_wrong_icrc = 0,
          .dropped_no_process = 0,
          .dropped_no_queue_pair = 0,
          .dropped_wrong_source = 0,
          .dropped_wrong_qkey = 0,
          .dropped_outside_window = 0,
          .dropped_over_budget = 0,
          .dropped_unproved = 0,
          .dropped_wrong_key = 0,
          .dropped_by_kernel = 0,
          .transmit_wait_us = 0};
}

void add_drops(const rnic::ProcessCounters& from, CountersSeen& to) {
  using rnic::Dropped;
  const auto of = [&](Dropped why) { return from.dropped[static_cast<std::size_t>(why)].read(); };
  to.dropped_malformed = of(Dropped::malformed);
  to.dropped_wrong_icrc = of(Dropped::wrong_icrc);
  to.dropped_no_process = of(Dropped::no_process);
  to.dropped_no_queue_pair = of(Dropped::no_queue_pair);
  to.dropped_wrong_source = of(Dropped::wrong_source);
  to.dropped_wrong_qkey = of(Dropped::wrong_qkey);
  to.dropped_outside_window = of(Dropped::outside_window);
  to.dropped_over_budget = of(Dropped::over_budget);
  to.dropped_unproved = of(Dropped::unproved);
  to.dropped_wrong_key = of(Dropped::wrong_key);
  to.dropped_by_kernel = from.not_received.load(std::memory_order_relaxed);
  to.transmit_wait_us = from.transmit_wait_us.load(std::memory_order_relaxed);
}

const char* type_name(std::uint16_t type) {
  switch (static_cast<rnic::QpType>(type)) {
    case rnic::QpType::rc:
      return "RC";
    case rnic::QpType::uc:
      return "UC";
    case rnic::QpType::ud:
      return "UD";
    case rnic::QpType::raw_packet:
      return "raw packet";
    case rnic::QpType::xrc_send:
      return "XRC send";
    case rnic::QpType::xrc_recv:
      return "XRC receive";
    case rnic::QpType::work_queue:
      return "WQ";
    case rnic::QpType::rss:
      return "RSS";
  }
  return "?";
}

// A work queue has states of its own; these are their verbs names.
const char* state_name(std::uint16_t type, std::uint32_t state) {
  const bool work_queue = type == static_cast<std::uint16_t>(rnic::QpType::work_queue);
  if (work_queue && state == static_cast<std::uint32_t>(rnic::QpState::rtr)) return "RDY";
  constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state < std::size(names) ? names[state] : "?";
}

void show_peer(const rnic::QpContext& qp, QueuePairSeen& shown) {
  if (qp.type == static_cast<std::uint16_t>(rnic::QpType::ud)) return;
  const std::uint32_t remote = qp.remote_qpn.load(std::memory_order_acquire);
  shown.peer_number = remote & ~rnic::over_packets;
  if ((remote & rnic::over_packets) == 0) return;
  for (std::size_t i = 0; i < qp.remote_gid.size(); ++i) {
    const std::uint64_t word = qp.remote_gid[i].load(std::memory_order_relaxed);
    std::memcpy(shown.peer_gid + i * sizeof word, &word, sizeof word);
  }
}

void read_once(const rnic::SegmentHeader& from, rnic::Slot slot, CountersSeen& sums,
               std::vector<QueuePairSeen>& queue_pairs) {
  queue_pairs.clear();
  sums = seen(from.counters.retired);
  add_drops(from.counters, sums);
  const std::uint32_t end = std::min(from.counters.qps_end.load(std::memory_order_acquire), rnic::max_qps);
  for (std::uint32_t i = 0; i < end; ++i) {
    if (from.qp_exists[i].load(std::memory_order_acquire) == 0) continue;
    const rnic::QpContext& qp = from.qps[i];
    QueuePairSeen shown{.number = rnic::Qpn(slot, i).value(),
                        .peer_number = 0,
                        .peer_gid = {},
                        .type = type_name(qp.type),
                        .state = state_name(qp.type, qp.state.load(std::memory_order_relaxed)),
                        .counters = seen(from.qp_counters[i])};
    show_peer(qp, shown);
    queue_pairs.push_back(shown);
    add(sums, shown.counters);
  }
}

}  // namespace

std::span<std::uint64_t> words_of(CountersSeen& counters) {
  return {reinterpret_cast<std::uint64_t*>(&counters), sizeof counters / sizeof(std::uint64_t)};
}

void add(CountersSeen& to, CountersSeen what) {
  std::ranges::transform(words_of(to), words_of(what), words_of(to).begin(), std::plus{});
}

ProcessSeen read_counters(const rnic::SegmentHeader& from, rnic::Slot slot,
                          std::vector<QueuePairSeen>& queue_pairs) {
  // A queue pair destroyed during the read would be counted twice or not at all, so read again. The number of
  // tries is bounded, because the process may be stopped in the middle of that.
  constexpr int tries = 100;
  ProcessSeen process{};
  for (int i = 0; i < tries; ++i) {
    const std::uint32_t before = from.counters.moving.load(std::memory_order_acquire);
    read_once(from, slot, process.sums, queue_pairs);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && from.counters.moving.load(std::memory_order_relaxed) == before) break;
  }
  process.bytes = sizeof process;
  process.slot = slot;
  process.identity = from.counters.identity.load(std::memory_order_relaxed);
  process.queue_pairs = queue_pairs.data();
  process.queue_pair_count = queue_pairs.size();
  return process;
}

}  // namespace weir::verbs
