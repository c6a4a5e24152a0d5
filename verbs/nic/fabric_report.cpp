#include "verbs/nic/fabric_report.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "verbs/monitor/counters_seen.hpp"

namespace weir::verbs {
namespace {

rnic::Adapter* described = nullptr;

std::string text_of(const std::uint8_t (&gid)[16]) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool is_ipv4 = std::all_of(gid, gid + 10, [](std::uint8_t byte) { return byte == 0; }) &&
                       gid[10] == 0xff && gid[11] == 0xff;
  if (is_ipv4)
    ::inet_ntop(AF_INET, gid + 12, text, sizeof text);
  else
    ::inet_ntop(AF_INET6, gid, text, sizeof text);
  return text;
}

std::string peer_of(const QueuePairSeen& queue_pair) {
  if (queue_pair.peer_number == 0) return "";
  char number[16];
  std::snprintf(number, sizeof number, "0x%x", queue_pair.peer_number);
  return std::string(", connected to ") + number + " at " + text_of(queue_pair.peer_gid);
}

unsigned long receives_posted(const rnic::QpContext& qp) {
  return qp.rq_posted.load(std::memory_order_relaxed) - qp.rq_next;
}

std::size_t describe(char* to, std::size_t room) {
  std::vector<QueuePairSeen> queue_pairs;
  const rnic::SegmentHeader& segment = described->segment().header();
  (void)read_counters(segment, described->slot(), queue_pairs);
  std::size_t used = 0;
  for (const QueuePairSeen& each : queue_pairs) {
    const CountersSeen& counts = each.counters;
    const rnic::QpContext& qp = segment.qps[rnic::Qpn(each.number).index()];
    const auto ull = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
    const int bytes = std::snprintf(
        to + used, room - used,
        "nic queue pair 0x%x: %s in %s%s; requested %llu SEND, %llu WRITE, %llu READ, %llu atomics; %llu "
        "completions polled; "
        "%llu receives taken, %lu posted; %llu packets out, %llu in, %llu sent again\n",
        each.number, each.type, each.state, peer_of(each).c_str(), ull(counts.sends), ull(counts.writes),
        ull(counts.reads), ull(counts.atomics), ull(counts.send_completions), ull(counts.receives),
        qp.srq != 0 ? 0 : receives_posted(qp), ull(counts.packets_out), ull(counts.packets_in),
        ull(counts.packets_resent));
    if (bytes < 0 || static_cast<std::size_t>(bytes) >= room - used) break;
    used += static_cast<std::size_t>(bytes);
  }
  return used;
}

}  // namespace

link::fabric::DescribeNic describe_on_fabric(rnic::Adapter& adapter) {
  described = &adapter;
  return describe;
}

}  // namespace weir::verbs
