#include "twin/captures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "wire/pcapng.hpp"
#include "wire/roce.hpp"

namespace weir::twin {
namespace {

constexpr std::size_t buffer_bytes = 64 * 1024, whole = ~std::size_t{0};
constexpr std::uint64_t first_ns = 1'767'225'600'000'000'000;  // 2026-01-01 00:00 UTC
constexpr std::uint8_t ecn_mask = 3;
constexpr std::size_t ipv4_at = 12;  // in a GID

// Locally administered; the last bytes of the address.
wire::Mac mac_of(const link::fabric::Address& address) {
  return {2, 0, address[12], address[13], address[14], address[15]};
}

wire::Route route_of(const link::fabric::PacketRecord& packet, std::uint8_t traffic_class) {
  wire::Route route;
  route.source = mac_of(packet.source);
  route.destination = mac_of(packet.destination);
  route.source_port = packet.source_port;
  const bool ipv4 = packet.source[10] == 0xff && packet.source[11] == 0xff &&
                    std::all_of(packet.source.begin(), packet.source.begin() + 10,
                                [](std::uint8_t byte) { return byte == 0; });
  if (ipv4) {
    wire::Ipv4 ip{};
    std::copy_n(packet.source.begin() + ipv4_at, ip.source.size(), ip.source.begin());
    std::copy_n(packet.destination.begin() + ipv4_at, ip.destination.size(), ip.destination.begin());
    ip.tos = traffic_class;
    ip.ttl = packet.hop_limit;
    route.ip = ip;
  } else {
    wire::Ipv6 ip{};
    ip.source = packet.source;
    ip.destination = packet.destination;
    ip.traffic_class = traffic_class;
    ip.hop_limit = packet.hop_limit;
    route.ip = ip;
  }
  return route;
}

}  // namespace

std::expected<Captures, std::string> Captures::make(std::string folder, const fabric::sim::Fabric& fabric) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return std::unexpected(fmt::format("cannot make the folder {}: {}", folder, error.message()));
  Captures made(std::move(folder), fabric.ports.size());
  std::vector<unsigned> links(fabric.nodes.size());
  for (const auto& port : fabric.ports) ++links[port.node];
  for (std::size_t i = 0; i < fabric.ports.size(); ++i) {
    const auto& port = fabric.ports[i];
    const auto& node = fabric.nodes[port.node];
    std::string name = node.name;
    if (!node.host || links[port.node] > 1) name += "-" + port.name;
    std::ranges::replace(name, '/', '_');
    made.ports_[i].file = made.folder_ + "/" + name + ".pcapng";
  }
  return made;
}

void Captures::add(std::uint32_t number, link::fabric::Ticks at, const link::fabric::PacketRecord& packet,
                   bool marked, std::span<const std::byte> bytes) {
  Port& port = ports_[number];
  if (!port.begun && port.buffer.empty()) port.buffer = wire::pcapng_section("weir fabric run", "port");
  const auto traffic_class = static_cast<std::uint8_t>(packet.traffic_class | (marked ? ecn_mask : 0));
  const auto frame = wire::encapsulate(route_of(packet, traffic_class), bytes);
  wire::append_pcapng_packet(port.buffer, first_ns + at / link::fabric::ticks_per_ns, frame, whole);
  if (port.buffer.size() >= buffer_bytes) write(port);
}

void Captures::write(Port& port) {
  if (port.buffer.empty()) return;
  std::ofstream file(port.file, std::ios::binary | (port.begun ? std::ios::app : std::ios::trunc));
  file.write(reinterpret_cast<const char*>(port.buffer.data()),
             static_cast<std::streamsize>(port.buffer.size()));
  file.flush();
  if (!file && error_ == 0) error_ = errno != 0 ? errno : EIO;
  port.begun = true;
  port.buffer.clear();
}

std::expected<void, std::string> Captures::finish() {
  for (Port& port : ports_) write(port);
  if (error_ == 0) return {};
  return std::unexpected(fmt::format("cannot write captures to {}: {}", folder_, std::strerror(error_)));
}

}  // namespace weir::twin
