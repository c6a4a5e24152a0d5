// What RoCEv2 packets cost without a connection: the NIC's batches, ICRCs, copies and socket, and no state
// machine between them.
//
//   udp_path_bench --receive                             # on one host
//   udp_path_bench --to 10.9.0.1 --from 10.9.0.2         # on another: sends to it; prints what it cost both
//
// The sender keeps as many bytes on their way as the NIC's window allows; the receiver acknowledges each
// batch that the socket hands it. A packet that does not come is not sent again. Both ends sleep while
// nothing is to be done, or with --spin look at the socket without pause. The receiver runs until it is
// killed.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "link/udp/udp_port.hpp"
#include "rnic/between_hosts/packet_arrivals.hpp"
#include "rnic/between_hosts/packet_batch.hpp"
#include "rnic/packet/window.hpp"
#include "wire/roce.hpp"

namespace {

using namespace weir;
using Clock = std::chrono::steady_clock;

constexpr std::size_t memory_bytes = 1 << 20;  // that data comes from and goes to
constexpr std::int64_t most_on_the_way = rnic::packet::Window::Limits{}.most;
constexpr std::chrono::milliseconds silence(20);  // then all that is on its way counts as lost
constexpr double warm_up_s = 0.2;

// What a packet is: data to be placed by its PSN, a question for a Report, a Report, or something to be sent
// back.
constexpr std::uint8_t data = wire::opcode(wire::Service::rc, wire::Operation::write_middle);
constexpr std::uint8_t question = wire::opcode(wire::Service::rc, wire::Operation::send_only);
constexpr std::uint8_t answer = wire::opcode(wire::Service::rc, wire::Operation::send_only_imm);
constexpr std::uint8_t ping = wire::opcode(wire::Service::uc, wire::Operation::send_only);

std::uint64_t cpu_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

// How the receiver fares, since it was started.
struct Report {
  std::uint64_t packets = 0, bytes = 0, cpu_ns = 0;
};

rnic::PacketRoute route_between(const rnic::Gid& source, const rnic::Gid& destination) {
  rnic::PacketRoute route;
  route.source = source;
  route.destination = destination;
  return route;
}

// As much of a process as packets need.
class Socket final : public rnic::HostPort {
 public:
  Socket(std::unique_ptr<link::UdpPort> port, bool spins) : port_(std::move(port)), spins_(spins) {}

  void send_packets(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) override {
    runs_.clear();
    for (const rnic::PacketRun& run : runs) runs_.push_back({run.bytes, run.segment});
    const int error = port_->send({.source = route.source, .destination = route.destination}, runs_);
    if (error != 0) throw std::runtime_error(std::string("cannot send: ") + std::strerror(error));
  }
  std::size_t packets_in_run(const rnic::PacketRoute&) override {
    return port_->cuts_runs() ? link::max_run_segments : 1;
  }

  // take(route back, packet) for each intact packet that has come; end() after each batch of them.
  template <class Take, class End>
  void receive(Take take, End end) {
    port_->receive([&](std::span<const link::UdpArrival> arrivals) {
      for (const link::UdpArrival& arrival : arrivals) {
        const rnic::PacketDatagram came{.bytes = arrival.payload,
                                        .source = arrival.source,
                                        .destination = arrival.destination,
                                        .source_port = arrival.source_port,
                                        .likely_id = arrival.index};
        const auto packet = rnic::PacketArrivals::parse(came);
        if (packet && arrivals_.is_intact(came))
          take(route_between(arrival.destination, arrival.source), *packet);
      }
      end();
    });
  }
  // Sleeps until something has come, or for that long.
  void wait(std::chrono::milliseconds longest) {
    pollfd readable{port_->descriptor(), POLLIN, 0};
    if (!spins_) ::poll(&readable, 1, static_cast<int>(longest.count()));
  }

  // Queue pairs would need these.
  rnic::PeerPtr peer(rnic::Slot, Wait) override { return nullptr; }
  Reached reach(rnic::Slot, Ticket&) override { return {}; }
  Everybody everybody(Ticket&) override { return {}; }
  std::uint64_t now_ns() override { return 0; }
  void wake_at(std::uint64_t) override {}
  void raise_channel(std::uint32_t) override {}
  bool fault_in(void*, std::uint64_t, rnic::Use) override { return false; }
  bool traps_copies() override { return false; }
  void async_event(rnic::AsyncEvent, rnic::QueuePair*, rnic::SharedReceiveQueue*) override {}

 private:
  std::unique_ptr<link::UdpPort> port_;
  const bool spins_;
  rnic::PacketArrivals arrivals_{*this};
  std::vector<link::UdpRun> runs_;
};

// Packets on one route, whose payload is copied from where it lies.
class Batch {
 public:
  Batch(Socket& socket, const rnic::PacketRoute& route, const wire::IcrcRoute& icrc)
      : batch_(socket, route, icrc) {}

  void add(std::uint8_t opcode, std::uint32_t psn, std::span<const std::byte> payload) {
    wire::Packet packet;
    packet.bth.opcode = opcode;
    packet.bth.psn = psn & 0xffffff;
    iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
    rnic::packet::Outgoing out{};
    out.header_bytes = static_cast<std::uint8_t>(wire::encode_headers(packet, payload.size(), out.header));
    out.pad = wire::pad_of(payload.size());
    out.is_ours = true;
    out.payload_bytes = static_cast<std::uint32_t>(payload.size());
    out.room = {&piece, 1};
    out.pieces = 1;
    batch_.add(out);
  }
  void send() { batch_.send(); }

 private:
  rnic::PacketBatch batch_;
};

wire::IcrcRoute icrc_of(const rnic::PacketRoute& route) {
  return wire::IcrcRoute({.source = route.source,
                          .destination = route.destination,
                          .source_port = wire::roce_port,
                          .destination_port = wire::roce_port});
}

void send_one(Socket& socket, const rnic::PacketRoute& route, std::uint8_t opcode,
              std::span<const std::byte> payload) {
  const wire::IcrcRoute icrc = icrc_of(route);
  Batch one(socket, route, icrc);
  one.add(opcode, 0, payload);
  one.send();
}

[[noreturn]] void serve(Socket& socket) {
  std::vector<std::byte> memory(memory_bytes);
  Report report;
  std::optional<rnic::PacketRoute> asked_by;
  for (;;) {
    socket.receive(
        [&](const rnic::PacketRoute& back, const wire::Packet& packet) {
          if (packet.bth.opcode == ping) return send_one(socket, back, ping, packet.payload);
          if (packet.bth.opcode == data && !packet.payload.empty()) {
            const std::size_t places = memory_bytes / packet.payload.size();
            std::ranges::copy(packet.payload,
                              memory.data() + packet.bth.psn % places * packet.payload.size());
            ++report.packets;
            report.bytes += packet.payload.size();
          }
          asked_by = back;
        },
        [&] {
          if (!asked_by) return;
          report.cpu_ns = cpu_ns();
          send_one(socket, *asked_by, answer, std::as_bytes(std::span(&report, 1)));
          asked_by.reset();
        });
    socket.wait(std::chrono::seconds(1));
  }
}

class Sender {
 public:
  Sender(Socket& socket, const rnic::PacketRoute& route, std::size_t payload)
      : socket_(socket),
        route_(route),
        icrc_(icrc_of(route)),
        payload_(payload),
        memory_(memory_bytes, std::byte{1}) {}

  Report ask() {
    heard_ = false;
    for (int tries = 0; !heard_ && tries < 50; ++tries) {
      send_one(socket_, route_, question, {});
      for (const auto asked = Clock::now(); !heard_ && Clock::now() - asked < silence;) take_answers();
    }
    if (!heard_) throw std::runtime_error("no answer: is udp_path_bench --receive running there?");
    return report_;
  }

  // The number of packets that were lost.
  std::uint64_t send_for(std::chrono::duration<double> how_long) {
    const std::uint64_t before = ask().packets;
    std::uint64_t sent = 0, lost = 0;
    const auto on_the_way = [&] { return static_cast<std::int64_t>(sent + before - lost - report_.packets); };
    const auto most = most_on_the_way / static_cast<std::int64_t>(payload_);
    const std::size_t places = memory_bytes / payload_;
    const auto until = Clock::now() + how_long;
    auto last_heard = Clock::now();
    for (auto now = last_heard; now < until || on_the_way() > 0; now = Clock::now()) {
      Batch batch(socket_, route_, icrc_);
      for (; now < until && on_the_way() < most; ++sent)
        batch.add(data, static_cast<std::uint32_t>(sent),
                  {memory_.data() + sent % places * payload_, payload_});
      batch.send();
      heard_ = false;
      take_answers();
      if (heard_)
        last_heard = now;
      else if (now - last_heard > silence)
        lost += static_cast<std::uint64_t>(on_the_way());
    }
    return sent + before - report_.packets;
  }

 private:
  void take_answers() {
    socket_.wait(silence);
    socket_.receive(
        [&](const rnic::PacketRoute&, const wire::Packet& packet) {
          if (packet.bth.opcode != answer || packet.payload.size() != sizeof report_) return;
          std::memcpy(&report_, packet.payload.data(), sizeof report_);
          heard_ = true;
        },
        [] {});
  }

  Socket& socket_;
  const rnic::PacketRoute route_;
  const wire::IcrcRoute icrc_;
  const std::size_t payload_;
  std::vector<std::byte> memory_;
  Report report_;  // the latest
  bool heard_ = false;
};

void measure_stream(Socket& socket, const rnic::PacketRoute& route, std::size_t payload, double seconds) {
  Sender sender(socket, route, payload);
  sender.send_for(std::chrono::duration<double>(warm_up_s));
  const Report before = sender.ask();
  const std::uint64_t own_before_ns = cpu_ns();
  const auto began = Clock::now();
  const std::uint64_t lost = sender.send_for(std::chrono::duration<double>(seconds));
  const std::chrono::duration<double> took = Clock::now() - began;
  const double own_ns = static_cast<double>(cpu_ns() - own_before_ns);
  const Report after = sender.ask();
  const auto bytes = static_cast<double>(after.bytes - before.bytes);
  const auto packets = static_cast<double>(after.packets - before.packets);
  const auto their_ns = static_cast<double>(after.cpu_ns - before.cpu_ns);
  fmt::print("MB/s               {:.0f}\n", bytes / took.count() / 1e6);
  fmt::print("sender ns/byte     {:.3f}\n", own_ns / bytes);
  fmt::print("sender ns/packet   {:.0f}\n", own_ns / packets);
  fmt::print("receiver ns/byte   {:.3f}\n", their_ns / bytes);
  fmt::print("receiver ns/packet {:.0f}\n", their_ns / packets);
  fmt::print("lost packets       {}\n", lost);
}

// Half of a round trip, as perftest has it.
void measure_ping(Socket& socket, const rnic::PacketRoute& route, std::size_t payload, std::size_t turns) {
  const std::vector<std::byte> bytes(payload);
  std::vector<double> half_us;
  while (half_us.size() < turns) {
    const auto began = Clock::now();
    send_one(socket, route, ping, bytes);
    bool back = false;
    while (!back && Clock::now() - began < silence) {
      socket.wait(silence);
      socket.receive(
          [&](const rnic::PacketRoute&, const wire::Packet& packet) { back |= packet.bth.opcode == ping; },
          [] {});
    }
    half_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count() / 2);
  }
  std::ranges::sort(half_us);
  fmt::print("us, median         {:.2f}\n", half_us[turns / 2]);
  fmt::print("us, 99.9th         {:.2f}\n", half_us[turns - 1 - turns / 1000]);
}

link::IpAddress address_of(const std::string& text) {
  link::IpAddress ip{};
  const std::string mapped = text.find(':') == std::string::npos ? "::ffff:" + text : text;
  if (::inet_pton(AF_INET6, mapped.c_str(), ip.data()) != 1)
    throw std::runtime_error(text + " is no IP address");
  return ip;
}

}  // namespace

int main(int count, char** values) {
  CLI::App app(
      "What RoCEv2 packets cost without a connection: batches, ICRCs, copies and UDP, and no state machine");
  bool receives = false, spins = false;
  std::string from, to;
  std::size_t mtu = 1024, turns = 0;
  double seconds = 2;
  app.add_flag("--receive", receives, "receive until killed; the port is RoCEv2's");
  auto* const destination = app.add_option("--to", to, "send to that address, of another host");
  app.add_option("--from", from, "from this address of ours")->needs(destination);
  app.add_option("--mtu", mtu, "payload of a packet, in bytes (1024)")->check(CLI::Range(1, 4096));
  app.add_option("--seconds", seconds, "how long (2)");
  app.add_option("--ping", turns, "instead: that many packets there and back, one at a time")
      ->check(CLI::PositiveNumber);
  app.add_flag("--spin", spins, "do not sleep while there is nothing to do");
  CLI11_PARSE(app, count, values);
  try {
    if (receives == !to.empty() || (!receives && from.empty()))
      throw std::runtime_error("say --receive, or --to and --from");
    auto port = link::UdpPort::open(wire::roce_port);
    if (!port) throw std::runtime_error(port.error().what);
    Socket socket(std::move(*port), spins);
    if (receives) serve(socket);
    const rnic::PacketRoute route = route_between(address_of(from), address_of(to));
    if (turns != 0)
      measure_ping(socket, route, mtu, turns);
    else
      measure_stream(socket, route, mtu, seconds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "udp_path_bench: {}\n", error.what());
    return 1;
  }
}
