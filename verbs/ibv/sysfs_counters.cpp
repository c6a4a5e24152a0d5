#include "verbs/ibv/sysfs_counters.hpp"

#include <algorithm>

namespace weir::verbs {
namespace {

using C = CountersSeen;

// These are the NIC's counters, whatever program uses it. A message on this host is never cut into packets,
// so it counts as one, as does the response to a READ or an atomic; there are no acknowledgements. Between
// two processes of a host nothing is lost or reordered: those counters are truly zero. Hardware counts a
// responder's event and its requester's reaction apart; here they are one event and one counter.
constexpr std::uint64_t word = 4;  // IBA 16.1.3.5: PortXmitData and PortRcvData count 32-bit words
constexpr CounterTerms messages_out = {&C::sends,   &C::writes,       &C::reads,
                                       &C::atomics, &C::reads_served, &C::atomics_served};
constexpr CounterTerms messages_in = {&C::sends_served,   &C::writes_served, &C::reads_served,
                                      &C::atomics_served, &C::reads,         &C::atomics,
                                      &C::datagrams_in};
constexpr SysfsCounter counters[] = {
    {"counters/port_xmit_data", {&C::bytes_out, &C::served_bytes_out}, nullptr, word},
    {"counters/port_rcv_data", {&C::bytes_back, &C::served_bytes_in, &C::datagram_bytes_in}, nullptr, word},
    {"counters/port_xmit_packets", messages_out},
    {"counters/port_rcv_packets", messages_in},
    {"counters/unicast_xmit_packets", messages_out, &C::multicasts_out},
    {"counters/unicast_rcv_packets", messages_in, &C::multicasts_in},
    {"counters/multicast_xmit_packets", {&C::multicasts_out}},
    {"counters/multicast_rcv_packets", {&C::multicasts_in}},
    {"counters/port_xmit_wait", {&C::transmit_wait_us}},  // a tick of 16.1.3.5 is a microsecond here
    {"counters/port_xmit_discards"},
    {"counters/port_rcv_errors"},
    {"counters/port_rcv_remote_physical_errors"},
    {"counters/port_rcv_switch_relay_errors"},
    {"counters/port_xmit_constraint_errors"},
    {"counters/port_rcv_constraint_errors"},
    {"counters/symbol_error"},
    {"counters/link_error_recovery"},
    {"counters/link_downed"},
    {"counters/local_link_integrity_errors"},
    {"counters/excessive_buffer_overrun_errors"},
    {"counters/VL15_dropped"},

    // Named as in mlx5.
    {"hw_counters/rx_write_requests", {&C::writes_served}},
    {"hw_counters/rx_read_requests", {&C::reads_served}},
    {"hw_counters/rx_atomic_requests", {&C::atomics_served}},
    {"hw_counters/out_of_buffer", {&C::rnrs, &C::datagrams_dropped}},
    {"hw_counters/rnr_nak_retry_err", {&C::rnrs}},
    {"hw_counters/local_ack_timeout_err", {&C::no_responses}},
    {"hw_counters/out_of_sequence"},
    {"hw_counters/packet_seq_err", {&C::naks_in}},
    {"hw_counters/implied_nak_seq_err"},
    {"hw_counters/duplicate_request", {&C::packets_repeated}},
    {"hw_counters/req_cqe_error", {&C::send_errors, &C::sends_flushed}},
    {"hw_counters/req_cqe_flush_error", {&C::sends_flushed}},
    {"hw_counters/req_remote_access_errors", {&C::remote_access_errors}},
    {"hw_counters/req_remote_invalid_request", {&C::remote_invalid_requests}},
    {"hw_counters/resp_cqe_error", {&C::receive_errors, &C::receives_flushed}},
    {"hw_counters/resp_cqe_flush_error", {&C::receives_flushed}},
    {"hw_counters/resp_remote_access_errors", {&C::remote_access_errors}},

    // Soft-RoCE (rxe) counters that mlx5 lacks or names differently.
    {"hw_counters/sent_pkts", messages_out},
    {"hw_counters/rcvd_pkts", messages_in},
    {"hw_counters/rdma_sends", {&C::sends}},
    {"hw_counters/rdma_recvs", {&C::receives}},
    {"hw_counters/rcvd_rnr_err", {&C::rnrs}},
    {"hw_counters/send_rnr_err", {&C::rnrs}},
    {"hw_counters/completer_retry_err", {&C::retries}},
    {"hw_counters/retry_exceeded_err", {&C::retries_exceeded}},
    {"hw_counters/retry_rnr_exceeded_err", {&C::rnr_retries_exceeded}},
    {"hw_counters/send_err", {&C::send_errors}},
    {"hw_counters/out_of_seq_request"},
    {"hw_counters/rcvd_seq_err", {&C::naks_in}},
    {"hw_counters/link_downed"},
};

}  // namespace

std::uint64_t SysfsCounter::of(const CountersSeen& port) const {
  std::uint64_t sum = 0;
  for (const CounterTerm term : plus)
    if (term != nullptr) sum += port.*term;
  // The two counters are not read at the same moment, so the difference must not fall below zero.
  if (minus != nullptr) sum -= std::min(sum, port.*minus);
  return sum / unit;
}

std::span<const SysfsCounter> sysfs_counters() { return counters; }

const SysfsCounter* find_sysfs_counter(std::string_view path) {
  const auto* const found = std::ranges::find(counters, path, &SysfsCounter::path);
  return found != std::end(counters) ? found : nullptr;
}

}  // namespace weir::verbs
