#include "verbs/nic/packet_network.hpp"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "link/explain.hpp"
#include "link/fabric/fabric_port.hpp"
#include "link/random_number.hpp"
#include "verbs/nic/fabric_report.hpp"
#include "verbs/nic/fault_plan.hpp"
#include "wire/mad.hpp"

namespace weir::verbs {

std::string text_of(const rnic::Gid& gid) {
  in6_addr address;
  std::memcpy(&address, gid.data(), gid.size());
  const bool v4 = IN6_IS_ADDR_V4MAPPED(&address);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(v4 ? AF_INET : AF_INET6, gid.data() + (v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

namespace {
std::uint64_t ns_of(link::Clock::time_point at) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count());
}
std::uint64_t now_ns() { return ns_of(link::Clock::now()); }
using link::FabricPort;

// A simulated network instead of UDP (link/fabric): what arrives is taken by whichever thread polls, and
// while none does by the link's.
link::Result<void> open_fabric(FabricPort& fabric, const void* owner, link::SameHostLink& link,
                               rnic::Adapter& adapter) {
  if (fabric.is_of(owner)) return {};
  if (!fabric.open(link.slot(), owner))
    return std::unexpected(
        link::Error{std::errc::too_many_files_open, "no descriptor for packets; raise ulimit -n"});
  fabric.describe_with(describe_on_fabric(adapter));
  auto watched = link.watch(fabric.descriptor(), [&fabric, &adapter] {
    fabric.drain();
    adapter.receive_packets(rnic::Adapter::Patience::wait);
  });
  if (watched) link.post([&fabric] { fabric.watch(); });
  return watched;
}

void send_to_fabric(FabricPort& fabric, const rnic::PacketRoute& route,
                    std::span<const rnic::PacketRun> runs) {
  link::FabricRoute to{.source = route.source,
                       .destination = route.destination,
                       .traffic_class = route.traffic_class,
                       .hop_limit = route.hop_limit,
                       .queue_pair = {}};
  for (const rnic::PacketRun& run : runs) {
    auto from = run.from.begin();
    for (auto rest = run.bytes; !rest.empty();) {
      const auto packet = rest.first(std::min<std::size_t>(run.segment, rest.size()));
      to.queue_pair = (from == run.from.end() ? route.from : *from++).value();
      fabric.send(to, wire::roce_port, packet);
      rest = rest.subspan(packet.size());
    }
  }
}

void receive_from_fabric(FabricPort& fabric, const rnic::HostPort::PacketSink& sink) {
  std::vector<rnic::PacketDatagram> packets;
  fabric.receive([&](std::span<const link::FabricArrival> arrivals) {
    packets.clear();
    for (const link::FabricArrival& arrival : arrivals)
      packets.push_back({.bytes = arrival.bytes,
                         .source = arrival.source,
                         .destination = arrival.destination,
                         .source_port = arrival.source_port,
                         .traffic_class = arrival.traffic_class,
                         .hop_limit = arrival.hop_limit});
    sink(packets);
  });
}

bool says(const char* variable, const char* value) {
  const char* const said = ::secure_getenv(variable);
  return said != nullptr && std::strcmp(said, value) == 0;
}
}  // namespace

bool PacketNetwork::switched_off() { return says(wire_variable, "0"); }
bool PacketNetwork::within_this_host() { return says(packets_variable, "1") || faults_want_packets(); }
bool PacketNetwork::says_ecn_capable() { return !says(ecn_variable, "0"); }

void PacketNetwork::stop() {
  if (port_) link_.unwatch(port_->descriptor());
  if (auto* const fabric = FabricPort::of_process(); fabric != nullptr && fabric->is_of(this))
    link_.unwatch(fabric->descriptor());
  if (users_) link_.unwatch(users_->descriptor());
}

void PacketNetwork::open_to_other_users() {
  if (FabricPort::of_process() != nullptr || switched_off() || link_.number_descriptor() < 0) return;
  auto opened = link::UserPort::open({.slot_socket = link_.number_descriptor(),
                                      .slot = link_.slot(),
                                      .user = ::geteuid(),
                                      // The receiving thread holds the NIC's locks.
                                      .gone = [this](std::uint64_t process) {
                                        link_.post([this, process] { handle_process_end(process); });
                                      }});
  if (!opened) return;
  users_ = std::move(*opened);
  const auto watched =
      link_.watch(users_->descriptor(), [this] { adapter_.receive_packets(rnic::Adapter::Patience::wait); });
  if (watched)
    members_ = std::make_unique<link::GroupMembers>(*users_);
  else
    users_.reset();
}

void PacketNetwork::finish() {
  finish_with_users();
  finish_with_hosts();
}

// Packets for other processes of our user may lie in our socket: they are passed on.
void PacketNetwork::finish_with_hosts() {
  link::UdpPort* const port = open_.load(std::memory_order_acquire);
  if (port == nullptr) return;
  constexpr int most_rounds = 64;  // more than a socket holds, should it turn nothing away
  // While packets still go out as they should:
  adapter_.receive_packets(rnic::Adapter::Patience::wait);
  adapter_.finish_packets();
  port->turn_arrivals_away();
  pollfd arrived{port->descriptor(), POLLIN, 0};
  for (int round = 0; round < most_rounds && ::poll(&arrived, 1, 0) > 0; ++round)
    adapter_.receive_packets(rnic::Adapter::Patience::wait);
}

// Most processes talk to no other user, so an exit must not wait without need. One that has only sent, as a
// sender to a group may, waits a little for its receivers to find it.
void PacketNetwork::finish_with_users() {
  constexpr std::chrono::milliseconds longest_wait{1'000};
  constexpr int look_ms = 10;  // the link's thread may have taken what we wait for
  if (!users_) return;
  users_spoke_.store(true, std::memory_order_relaxed);  // from now on this thread takes what they send
  const auto deadline = link::Clock::now() + longest_wait;
  while (users_->waits_to_be_believed() && link::Clock::now() < deadline) {
    pollfd callers{users_->descriptor(), POLLIN, 0};
    (void)::poll(&callers, 1, look_ms);
    adapter_.receive_packets(rnic::Adapter::Patience::wait);
  }
  rnic::Slot slot = 1;
  while (slot < link::max_slots && users_->known_in(slot) == 0) ++slot;
  if (slot < link::max_slots) adapter_.receive_packets(rnic::Adapter::Patience::wait);
}

void PacketNetwork::on_process_gone(GoneHandler handler) {
  const std::lock_guard lock(mutex_);
  gone_ = std::move(handler);
}

void PacketNetwork::handle_process_end(std::uint64_t process) {
  adapter_.process_gone(process);
  GoneHandler gone;
  {
    const std::lock_guard lock(mutex_);
    gone = gone_;
  }
  if (gone) gone(process);
}

link::Result<void> PacketNetwork::open() {
  const std::lock_guard lock(mutex_);
  if (auto* const fabric = FabricPort::of_process()) return open_fabric(*fabric, this, link_, adapter_);
  if (port_) return {};
  if (switched_off())
    return std::unexpected(link::Error{std::errc::network_unreachable,
                                       "packets to other hosts are switched off; unset WEIR_WIRE"});
  auto opened = link::UdpPort::open(wire::roce_port);
  if (!opened) return std::unexpected(opened.error());
  if (other_way_.open)
    if (auto also = other_way_.open(); !also) return also;
  auto watched = link_.watch((*opened)->descriptor(), [this] { packets_came(); });
  if (!watched) return watched;
  port_ = std::move(*opened);
  steering_ = std::make_unique<link::Steering>(link::Steering::Options{
      .socket = port_->descriptor(),
      .port = wire::roce_port,
      .slot = link_.slot(),
      .shifts = {.queue_pair = rnic::qp_index_bits, .communication = communication_slot_shift},
      .seed = static_cast<std::uint32_t>(link::random_number()),
      .settle_later =
          [this] {
            link_.at(link::Clock::now() + link::Steering::settle_time, [this] { settle_steering(); });
          },
      .another_looks = [this] { admission_.look_again(); }});
  admission_.filter(port_->descriptor(), [this](std::chrono::milliseconds after, std::function<void()> run) {
    link_.at(link::Clock::now() + after, std::move(run));
  });
  open_.store(port_.get(), std::memory_order_release);
  steering_->look(link::Clock::now());
  return {};
}

void PacketNetwork::settle_steering() {
  adapter_.receive_packets(rnic::Adapter::Patience::wait);
  steering_->settle(link::Clock::now());
}

void PacketNetwork::listens(std::uint32_t service) {
  if (open_.load(std::memory_order_acquire) != nullptr) steering_->listen(service);
}

void PacketNetwork::listens_no_more(std::uint32_t service) {
  if (open_.load(std::memory_order_acquire) != nullptr) steering_->leave(service);
}

void PacketNetwork::misled() {
  if (open_.load(std::memory_order_acquire) != nullptr) steering_->look(link::Clock::now());
}

void PacketNetwork::packets_came() {
  adapter_.receive_packets(rnic::Adapter::Patience::wait);
  watch_.woken(now_ns());
}

void PacketNetwork::wait_for_packets(bool wanted) {
  link_.heed(open_.load(std::memory_order_acquire)->descriptor(), wanted);
}

bool PacketNetwork::lend_to_sleeper() {
  return channels_.hold(open_.load(std::memory_order_acquire)->descriptor());
}

void PacketNetwork::take_from_sleeper() {
  channels_.release(open_.load(std::memory_order_acquire)->descriptor());
}

bool PacketNetwork::holds_packets() {
  if (const auto* const fabric = FabricPort::of_process()) return fabric->holds_packets();
  const link::UdpPort* const port = open_.load(std::memory_order_acquire);
  if (port == nullptr) return false;
  pollfd arrived{port->descriptor(), POLLIN, 0};
  return ::poll(&arrived, 1, 0) > 0;
}

void PacketNetwork::wake_at(std::uint64_t at_ns) {
  link_.at(link::Clock::time_point(std::chrono::nanoseconds(at_ns)), [this] { watch_.nap_over(now_ns()); });
}

// For the user: the program will only see "transport retry counter exceeded".
void PacketNetwork::explain_failure(int error, const rnic::PacketRoute& route) {
  static std::atomic_flag said;
  if (!link::first_time(said)) return;
  std::string why = "cannot send packets to " + text_of(route.destination) + ": " + std::strerror(error);
  if (error == EMSGSIZE)
    why += "; the way there takes shorter packets than the path MTU asks for: set a smaller one at both ends";
  else if (error == EPERM)
    why += "; a firewall of this host forbids it: allow UDP port 4791";
  else if (error == EINVAL)
    why +=
        "; " + text_of(route.source) + " is no address from which there is a way there: choose another GID";
  else
    why += "; check the route and the address of the other end";
  link::explain(why);
}

namespace {

constexpr std::size_t most_runs = 64;  // per call

// The packets of the runs that were sent, as the kernel segmented and numbered them.
void trace(rnic::Tracer& tracer, const rnic::PacketRoute& route, std::uint16_t source_port,
           std::span<const rnic::PacketRun> runs, std::span<const bool> went) {
  std::vector<rnic::WirePacket> packets;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::uint16_t id = 0;
    for (auto rest = went[i] ? runs[i].bytes : std::span<const std::byte>(); !rest.empty(); ++id) {
      const auto bytes = rest.first(std::min<std::size_t>(runs[i].segment, rest.size()));
      packets.push_back({.bytes = bytes,
                         .source = route.source,
                         .destination = route.destination,
                         .source_port = source_port,
                         .likely_id = id,
                         .traffic_class = route.traffic_class,
                         .hop_limit = route.hop_limit,
                         .own = runs[i].from.empty() ? route.from : runs[i].from[id]});
      rest = rest.subspan(bytes.size());
    }
  }
  if (!packets.empty()) tracer.on_wire(packets);
}

}  // namespace

// 0, or the errno of a run that was not sent.
int PacketNetwork::send_some(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs,
                             std::span<bool> went) {
  if (route.process != 0) return carry(route, runs, went);
  if (auto* const fabric = FabricPort::of_process()) {
    send_to_fabric(*fabric, route, runs);
    std::ranges::fill(went, true);
    return 0;
  }
  link::UdpPort* const port = open_.load(std::memory_order_acquire);
  if (port == nullptr) return 0;
  const link::UdpRoute to{.source = route.source,
                          .destination = route.destination,
                          .traffic_class = route.traffic_class,
                          .hop_limit = route.hop_limit,
                          .interface = route.interface};
  std::array<link::UdpRun, most_runs> some;
  for (std::size_t i = 0; i < runs.size(); ++i) some[i] = {runs[i].bytes, runs[i].segment};
  return port->send(to, std::span(some).first(runs.size()), went);
}

// A run is lost if the socket has no room for it or its process has ended.
int PacketNetwork::carry(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs,
                         std::span<bool> went) {
  std::ranges::fill(went, false);
  for (std::size_t i = 0; users_ && i < runs.size(); ++i) {
    const int error = users_->send(route.process, {.bytes = runs[i].bytes,
                                                   .segment = runs[i].segment,
                                                   .traffic_class = route.traffic_class,
                                                   .hop_limit = route.hop_limit,
                                                   .source = route.source,
                                                   .destination = route.destination});
    if (i < went.size()) went[i] = error == 0;
  }
  return 0;
}

void PacketNetwork::send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) {
  std::array<bool, most_runs> went{};
  rnic::Tracer* const tracer = adapter_.tracer();
  while (!runs.empty()) {
    const std::size_t count = std::min(runs.size(), most_runs);
    const auto taken = std::span(went).first(tracer != nullptr ? count : 0);
    if (const int error = send_some(route, runs.first(count), taken); error != 0)
      explain_failure(error, route);
    if (tracer != nullptr) trace(*tracer, route, wire::roce_port, runs.first(count), taken);
    runs = runs.subspan(count);
  }
}

std::size_t PacketNetwork::packets_in_run(const rnic::PacketRoute& route) const {
  if (route.process != 0) return link::max_carried_packets;
  if (FabricPort::of_process() != nullptr) return 1;
  const link::UdpPort* const port = open_.load(std::memory_order_acquire);
  return port != nullptr && port->cuts_runs() ? link::max_run_segments : 1;
}

void PacketNetwork::receive(const rnic::HostPort::PacketSink& sink) {
  if (auto* const fabric = FabricPort::of_process()) return receive_from_fabric(*fabric, sink);
  const bool polls = !link_.on_progress_thread();
  // A poller leaves it to the link's thread to find that another user's program begins to talk to us.
  if (!polls || users_spoke_.load(std::memory_order_relaxed)) receive_from_users(sink);
  link::UdpPort* const port = open_.load(std::memory_order_acquire);
  if (port == nullptr) return;
  receive_from_hosts(*port, sink);
  const link::Clock::time_point now = link::Clock::now();
  steering_->check(now);
  report_drops(now);
  if (polls) watch_.polled(ns_of(now));
}

void PacketNetwork::report_drops(link::Clock::time_point now) {
  constexpr std::chrono::seconds interval{1};
  if (now - drops_looked_at_ < interval) return;
  drops_looked_at_ = now;
  rnic::ProcessCounters& counters = adapter_.segment().header().counters;
  counters.not_received.store(open_.load(std::memory_order_acquire)->not_received(),
                              std::memory_order_relaxed);
  if (const auto line = drop_report_.look(DropReport::counts_of(counters), now)) link::explain(*line);
}

void PacketNetwork::receive_from_users(const rnic::HostPort::PacketSink& sink) {
  if (!users_) return;
  users_->receive([&](std::span<const link::UserPort::Arrival> arrivals) {
    from_users_.clear();
    users_spoke_.store(true, std::memory_order_relaxed);
    for (const auto& [run, from, slot] : arrivals) {
      rnic::PacketDatagram packet{.bytes = {},
                                  .source = run.source,
                                  .destination = run.destination,
                                  .source_port = wire::roce_port,
                                  .traffic_class = run.traffic_class,
                                  .hop_limit = run.hop_limit,
                                  .process = from,
                                  .slot = slot};
      for (auto rest = run.bytes; !rest.empty(); ++packet.likely_id) {
        packet.bytes = rest.first(std::min<std::size_t>(run.segment, rest.size()));
        rest = rest.subspan(packet.bytes.size());
        from_users_.push_back(packet);
      }
    }
    sink(from_users_);
  });
}

void PacketNetwork::receive_from_hosts(link::UdpPort& port, const rnic::HostPort::PacketSink& sink) {
  port.receive([&](std::span<const link::UdpArrival> arrivals) {
    from_hosts_.clear();
    for (const link::UdpArrival& arrival : arrivals) {
      if (steering_->take(arrival)) continue;
      from_hosts_.push_back({.bytes = arrival.payload,
                             .source = arrival.source,
                             .destination = arrival.destination,
                             .source_port = arrival.source_port,
                             .likely_id = arrival.index,
                             .interface = arrival.interface,
                             .traffic_class = arrival.traffic_class,
                             .hop_limit = arrival.hop_limit});
    }
    sink(from_hosts_);
  });
}

int PacketNetwork::join(const rnic::Gid& group, std::uint32_t interface) {
  link::UdpPort* const port = open_.load(std::memory_order_acquire);
  return port != nullptr ? port->join(group, interface) : ENOTCONN;
}

// If the interface is gone, its memberships are gone too.
void PacketNetwork::leave(const rnic::Gid& group, std::uint32_t interface) {
  if (link::UdpPort* const port = open_.load(std::memory_order_acquire)) (void)port->leave(group, interface);
}

void PacketNetwork::on_management(ManagementHandler handler) {
  const std::lock_guard lock(mutex_);
  management_ = std::make_shared<const ManagementHandler>(std::move(handler));
}

// Runs on the link's thread, because the thread that delivers packets holds the NIC's locks.
void PacketNetwork::receive_management(const rnic::PacketDatagram& datagram, const wire::Packet& packet) {
  std::shared_ptr<const ManagementHandler> handler;
  {
    const std::lock_guard lock(mutex_);
    handler = management_;
  }
  if (!handler) return;
  std::array<std::byte, wire::mad_bytes> mad;
  std::memcpy(mad.data(), packet.payload.data(), mad.size());
  const ManagementRoute came{datagram.source, datagram.destination, datagram.process};
  link_.post([handler, mad, came] { (*handler)(came, mad); });
}

PacketNetwork::ManagementPacket PacketNetwork::management_packet(const rnic::PacketRoute& route,
                                                                 std::span<const std::byte> mad,
                                                                 std::uint16_t source_port) {
  wire::Packet packet;
  packet.bth.opcode = wire::opcode(wire::Service::ud, wire::Operation::send_only);
  packet.bth.destination = wire::cm_qpn;
  packet.bth.psn = management_psn_.fetch_add(1, std::memory_order_relaxed) & 0xffffff;
  packet.deth = {.qkey = wire::cm_qkey, .source = wire::cm_qpn};
  ManagementPacket made;
  const std::span<std::byte> all(made.room);
  const std::size_t headers = wire::encode_headers(packet, mad.size(), all.first<wire::longest_headers>());
  std::memcpy(all.data() + headers, mad.data(), mad.size());
  const std::size_t covered = headers + mad.size();
  made.length = static_cast<std::uint16_t>(covered + wire::icrc_bytes);
  if (route.process != 0) return made;
  const wire::IcrcRoute icrc({.source = route.source,
                              .destination = route.destination,
                              .source_port = source_port,
                              .destination_port = wire::roce_port},
                             adapter_.host().wire_key());
  const auto sum = icrc.of(all.first(covered));
  std::memcpy(all.data() + covered, sum.data(), sum.size());
  return made;
}

void PacketNetwork::send_management(const rnic::PacketRoute& route, std::span<const std::byte> mad) {
  const ManagementPacket packet = management_packet(route, mad, wire::roce_port);
  const rnic::PacketRun run{packet.bytes(), packet.length};
  front_->send(route, {&run, 1});
}

std::unique_ptr<link::PortProbe> PacketNetwork::ask(const rnic::PacketRoute& route,
                                                    std::span<const std::byte> mad) {
  if (FabricPort::of_process() != nullptr) return nullptr;
  if (other_way_.carries && other_way_.carries(route)) return nullptr;
  auto probe = link::PortProbe::open(
      {.source = route.source, .destination = route.destination, .interface = route.interface});
  if (!probe) return nullptr;
  const ManagementPacket packet = management_packet(route, mad, probe->source_port());
  if (!probe->send(wire::roce_port, packet.bytes())) return nullptr;
  if (rnic::Tracer* const tracer = adapter_.tracer(); tracer != nullptr) {
    const rnic::PacketRun run{packet.bytes(), packet.length};
    const bool went = true;
    trace(*tracer, route, probe->source_port(), {&run, 1}, {&went, 1});
  }
  return probe;
}

}  // namespace weir::verbs
