// The counters as data: one row each, with its names, for everything that prints all of them.
#pragma once

#include <array>

#include "verbs/monitor/statistics.hpp"

namespace weir::command {

struct CounterRow {
  std::uint64_t verbs::CountersSeen::* counter;
  const char* json;        // in JSON
  const char* prometheus;  // the metric, without weir_ in front and _total behind
  const char* label;       // its label, or ""
  const char* help;        // of the metric
};

inline constexpr auto counter_list = [] {
  using C = verbs::CountersSeen;
  constexpr const char* requests = "Work requests completed without an error, by operation.";
  constexpr const char* served = "Operations that peers did here, by operation.";
  constexpr const char* errors = "Work requests completed with an error of their own.";
  constexpr const char* status = "Of the errors of the send queue, those with this status.";
  constexpr const char* multicasts = "Datagrams to a multicast group.";
  constexpr const char* flushed = "Work requests flushed.";
  constexpr const char* wakeups = "Completions that woke a completion channel.";
  constexpr const char* doorbells = "Times work was announced to the NIC.";
  constexpr const char* completions = "Completions polled; of receives only those without an error.";
  constexpr const char* out = "Payload bytes that left: sent and written, or read by the peer.";
  constexpr const char* in = "Payload bytes that came: received and read, or written by the peer.";
  constexpr const char* packets = "Packets to and from other hosts.";
  constexpr const char* naks = "Refusals of packets, and losses that a later answer showed.";
  constexpr const char* dropped =
      "Packets to the process that reached no queue pair of it; kernel: by its filter, or for want of room.";
  constexpr const char* cnps = "Congestion notification packets.";
  constexpr const char* rnr_naks = "Packets refused because no receive was posted.";
  return std::to_array<CounterRow>(
      {{&C::sends, "sends", "operations", "operation=\"send\"", requests},
       {&C::writes, "writes", "operations", "operation=\"write\"", requests},
       {&C::reads, "reads", "operations", "operation=\"read\"", requests},
       {&C::atomics, "atomics", "operations", "operation=\"atomic\"", requests},
       {&C::local_operations, "local_operations", "operations", "operation=\"local\"", requests},
       {&C::sends_served, "sends_served", "served", "operation=\"send\"", served},
       {&C::writes_served, "writes_served", "served", "operation=\"write\"", served},
       {&C::reads_served, "reads_served", "served", "operation=\"read\"", served},
       {&C::atomics_served, "atomics_served", "served", "operation=\"atomic\"", served},
       {&C::bytes_out, "bytes_out", "bytes_out", "by=\"self\"", out},
       {&C::served_bytes_out, "served_bytes_out", "bytes_out", "by=\"peer\"", out},
       {&C::bytes_back, "bytes_back", "bytes_in", "by=\"self\"", in},
       {&C::served_bytes_in, "served_bytes_in", "bytes_in", "by=\"peer\"", in},
       {&C::datagram_bytes_in, "datagram_bytes_in", "bytes_in", "by=\"datagram\"", in},
       {&C::datagrams_in, "datagrams_in", "datagrams_received", "", "Datagrams and raw packets received."},
       {&C::multicasts_out, "multicasts_out", "multicasts", "way=\"out\"", multicasts},
       {&C::multicasts_in, "multicasts_in", "multicasts", "way=\"in\"", multicasts},
       {&C::doorbells, "doorbells", "doorbells", "queue=\"send\"", doorbells},
       {&C::receive_doorbells, "receive_doorbells", "doorbells", "queue=\"receive\"", doorbells},
       {&C::send_completions, "send_completions", "completions", "queue=\"send\"", completions},
       {&C::receives, "receives", "completions", "queue=\"receive\"", completions},
       {&C::own_wakeups, "own_wakeups", "wakeups", "by=\"self\"", wakeups},
       {&C::receive_wakeups, "receive_wakeups", "wakeups", "by=\"peer\"", wakeups},
       {&C::rnrs, "rnrs", "rnrs", "", "Messages that found no receive posted, and waited."},
       {&C::no_responses, "no_responses", "no_responses", "",
        "Messages that the peer did not answer, and waited."},
       {&C::retries, "retries", "retries", "", "Times a waiting message was tried again."},
       {&C::send_errors, "send_errors", "errors", "queue=\"send\"", errors},
       {&C::receive_errors, "receive_errors", "errors", "queue=\"receive\"", errors},
       {&C::sends_flushed, "sends_flushed", "flushed", "queue=\"send\"", flushed},
       {&C::receives_flushed, "receives_flushed", "flushed", "queue=\"receive\"", flushed},
       {&C::datagrams_dropped, "datagrams_dropped", "datagrams_dropped", "",
        "Datagrams that found no receive posted."},
       {&C::retries_exceeded, "retries_exceeded", "error_status", "status=\"retry_exceeded\"", status},
       {&C::rnr_retries_exceeded, "rnr_retries_exceeded", "error_status", "status=\"rnr_retry_exceeded\"",
        status},
       {&C::remote_access_errors, "remote_access_errors", "error_status", "status=\"remote_access\"", status},
       {&C::remote_invalid_requests, "remote_invalid_requests", "error_status",
        "status=\"remote_invalid_request\"", status},
       {&C::packets_out, "packets_out", "packets", "way=\"out\"", packets},
       {&C::packets_in, "packets_in", "packets", "way=\"in\"", packets},
       {&C::packets_resent, "packets_resent", "packets_resent", "", "Packets that were sent again."},
       {&C::packets_repeated, "packets_repeated", "packets_repeated", "",
        "Packets that came although they had come before."},
       {&C::naks_in, "naks_in", "naks", "way=\"in\"", naks},
       {&C::naks_out, "naks_out", "naks", "way=\"out\"", naks},
       {&C::rnr_naks_in, "rnr_naks_in", "rnr_naks", "way=\"in\"", rnr_naks},
       {&C::rnr_naks_out, "rnr_naks_out", "rnr_naks", "way=\"out\"", rnr_naks},
       {&C::packets_dropped, "packets_dropped", "packets_dropped", "",
        "Packets that came and were not taken: out of order, late, from elsewhere."},
       {&C::packets_marked, "packets_marked", "packets_marked", "",
        "Packets that came marked by a congested switch (ECN)."},
       {&C::cnps_in, "cnps_in", "cnps", "way=\"in\"", cnps},
       {&C::cnps_out, "cnps_out", "cnps", "way=\"out\"", cnps},
       {&C::dropped_malformed, "dropped_malformed", "arrivals_dropped", "reason=\"malformed\"", dropped},
       {&C::dropped_wrong_icrc, "dropped_wrong_icrc", "arrivals_dropped", "reason=\"wrong_icrc\"", dropped},
       {&C::dropped_no_process, "dropped_no_process", "arrivals_dropped", "reason=\"no_process\"", dropped},
       {&C::dropped_no_queue_pair, "dropped_no_queue_pair", "arrivals_dropped", "reason=\"no_queue_pair\"",
        dropped},
       {&C::dropped_wrong_source, "dropped_wrong_source", "arrivals_dropped", "reason=\"wrong_source\"",
        dropped},
       {&C::dropped_wrong_qkey, "dropped_wrong_qkey", "arrivals_dropped", "reason=\"wrong_qkey\"", dropped},
       {&C::dropped_outside_window, "dropped_outside_window", "arrivals_dropped", "reason=\"outside_window\"",
        dropped},
       {&C::dropped_over_budget, "dropped_over_budget", "arrivals_dropped", "reason=\"over_budget\"",
        dropped},
       {&C::dropped_unproved, "dropped_unproved", "arrivals_dropped", "reason=\"unproved\"", dropped},
       {&C::dropped_wrong_key, "dropped_wrong_key", "arrivals_dropped", "reason=\"wrong_key\"", dropped},
       {&C::dropped_by_kernel, "dropped_by_kernel", "arrivals_dropped", "reason=\"kernel\"", dropped},
       {&C::transmit_wait_us, "transmit_wait_us", "transmit_wait_microseconds", "",
        "How long there were packets to send and the port was paused."}});
}();
static_assert(counter_list.size() * sizeof(std::uint64_t) == sizeof(verbs::CountersSeen), "each has a row");

}  // namespace weir::command
