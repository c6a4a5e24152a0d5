#include "sockets/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "sockets/connection_objects.hpp"

namespace weir::sockets {
namespace {

struct Sums {
  std::uint64_t connections = 0, changed = 0;
  std::uint64_t sent = 0, sent_tcp = 0, received = 0, received_tcp = 0;
  std::array<std::uint64_t, reasons> why_not{};
  std::uint64_t short_ones = 0;  // ended before a peer was looked for
};

SectionMutex& sums_mutex() {
  static SectionMutex& made = *new SectionMutex;
  return made;
}
constinit Sums ended{};

void add(Sums& to, const Connection& one) {
  const EndState& end = one.record().end;
  const auto sent = end.sent.load(), received = end.received.load();
  if (sent + received == 0) return;  // a listener, or a connection that carried nothing
  ++to.connections;
  to.sent += sent;
  to.sent_tcp += end.sent_tcp.load();
  to.received += received;
  to.received_tcp += end.received_tcp.load();
  const auto path_lost = static_cast<std::size_t>(Reason::path_lost);
  if (one.stays() == Reason::path_lost) ++to.why_not[path_lost];
  if (sent > end.sent_tcp.load() || received > end.received_tcp.load())
    ++to.changed;
  else if (const auto why = static_cast<std::size_t>(one.stays()); why != 0 && why < reasons)
    ++to.why_not[why];
  else if (one.life() == Connection::Life::observed)
    ++to.short_ones;
}

std::string amount(std::uint64_t bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string carried(const char* what, std::uint64_t all, std::uint64_t tcp) {
  return std::string(what) + " " + amount(all - std::min(all, tcp)) + " by RDMA, " + amount(tcp) +
         " by TCP\n";
}

const char* advice(const Sums& all, Reason most) {
  if (most == Reason::path_lost) return "let UDP port 4791 pass between the hosts";
  if (all.connections == all.changed) return "nothing: every connection changed";
  if (most == Reason::no_peer) return "start the other end with weir run --sockets, too";
  if (most == Reason::other_host)
    return "name their networks with --sockets-peers, if their hosts are trusted";
  if (most == Reason::none) return "nothing: connections this short are better on TCP";
  return "WEIR_SOCKETS=trace says which connection it was";
}

}  // namespace

void count_ended(const Connection& connection) {
  const std::scoped_lock lock(sums_mutex());
  add(ended, connection);
}

std::string report() {
  Sums all;
  {
    const std::scoped_lock lock(sums_mutex());
    all = ended;
  }
  ConnectionObjects::each_once([&](int, const Connection& it) { add(all, it); });
  if (all.connections == 0) return {};  // shells and the programs that they start are many
  const auto most = std::ranges::max_element(all.why_not);
  const Reason why = *most > 0 ? static_cast<Reason>(most - all.why_not.begin()) : Reason::none;
  const std::string begin = std::string("weir sockets: ") + program_invocation_short_name + "[" +
                            std::to_string(::getpid()) + "]: ";
  std::string text = begin + std::to_string(all.connections) +
                     (all.connections == 1 ? " connection, " : " connections, ") +
                     std::to_string(all.changed) + " changed to RDMA, " + std::to_string(all.short_ones) +
                     " were too short to\n";
  text += begin + carried("sent", all.sent, all.sent_tcp);
  text += begin + carried("received", all.received, all.received_tcp);
  text +=
      begin + "stayed on TCP: " +
      (*most > 0 ? std::to_string(*most) + ", as each " + sockets::text(why) + "\n" : "none for a reason\n");
  text += begin + "what to do: " + advice(all, why) + "\n";
  return text;
}

}  // namespace weir::sockets
