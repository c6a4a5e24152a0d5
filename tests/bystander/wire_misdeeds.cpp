// Misdeeds on the wire: RoCEv2 packets from a program that has no queue pair and only reaches the NIC's UDP
// port. They come from addresses in 127.0.0.0/8, which the kernel's filter lets through, so they reach the
// NIC's own checks; the filter drops most of what strangers on other hosts send.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <vector>

#include "link/unique_fd.hpp"
#include "rpc/address.hpp"
#include "tests/bystander/misdeeds.hpp"
#include "wire/mad.hpp"
#include "wire/roce.hpp"

namespace weir::bystander::wire {
namespace {

using weir::wire::IcrcRoute;
using weir::wire::Packet;

constexpr std::array<std::uint8_t, 4> server_address{127, 0, 0, 1};
constexpr int packets_at_once = 32;

// Some 20,000 packets a second: 10 Mbit/s.
void breathe() {
  const timespec time{0, 1'500'000};
  ::nanosleep(&time, nullptr);
}

IcrcRoute::Address mapped(const std::array<std::uint8_t, 4>& ip) {
  IcrcRoute::Address address{};
  address[10] = address[11] = 0xff;
  std::ranges::copy(ip, address.begin() + 12);
  return address;
}

// A stranger's socket, with an address of its own. Throws when nothing listens on the NIC's port: the attack
// would then test nothing.
class Stranger {
 public:
  explicit Stranger(std::uint8_t number) : ip_{127, 0, 1, number}, socket_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    std::memcpy(&own.sin_addr, ip_.data(), ip_.size());
    socklen_t size = sizeof own;
    if (!socket_ || ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
      throw std::runtime_error(std::strerror(errno));
    // As a RoCEv2 NIC sends: the ICRC counts on DF.
    const int discover = IP_PMTUDISC_DO;
    ::setsockopt(socket_.get(), IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    port_ = ntohs(own.sin_port);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(weir::wire::roce_port);
    std::memcpy(&to.sin_addr, server_address.data(), server_address.size());
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      throw std::runtime_error(std::strerror(errno));
  }

  // `sound`: with the right ICRC.
  void send(const Packet& packet, bool sound) {
    std::array<std::byte, weir::wire::longest_headers> headers;
    const std::size_t used = encode_headers(packet, packet.payload.size(), headers);
    std::vector<std::byte> bytes(headers.begin(), headers.begin() + static_cast<std::ptrdiff_t>(used));
    bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
    bytes.resize(bytes.size() + weir::wire::pad_of(packet.payload.size()));
    const IcrcRoute route({mapped(ip_), mapped(server_address), port_, weir::wire::roce_port});
    auto icrc = route.of(bytes);
    if (!sound) icrc[0] ^= std::byte{0x5a};
    bytes.insert(bytes.end(), icrc.begin(), icrc.end());
    // A full queue does not stop a stranger.
    if (::send(socket_.get(), bytes.data(), bytes.size(), 0) < 0 && errno == ECONNREFUSED)
      throw std::runtime_error("nothing listens on the NIC's UDP port");
  }

  const std::array<std::uint8_t, 4>& ip() const { return ip_; }

 private:
  std::array<std::uint8_t, 4> ip_;
  link::UniqueFd socket_;
  std::uint16_t port_ = 0;
};

std::vector<Stranger> strangers() {
  std::vector<Stranger> all;
  for (std::uint8_t number = 1; number <= 8; ++number) all.emplace_back(number);
  return all;
}

Packet junk(Attack& attack, std::span<const std::byte> payload) {
  Packet packet;
  do {
    packet.bth.opcode = static_cast<std::uint8_t>(attack.below(256));
  } while (weir::wire::extensions_of(packet.bth.opcode) == std::nullopt);
  packet.bth.destination = static_cast<std::uint32_t>(attack.below(1 << 24));
  packet.bth.psn = static_cast<std::uint32_t>(attack.below(1 << 24));
  packet.bth.ack_request = attack.below(2) == 0;
  packet.reth = {attack.random(), static_cast<std::uint32_t>(attack.random()),
                 static_cast<std::uint32_t>(attack.below(1 << 20))};
  packet.payload = payload.first(attack.below(payload.size()));
  return packet;
}

// A message of the connection manager with ids that may be those of a connection.
weir::wire::Mad forged_message(Attack& attack, const Stranger& from, std::uint16_t port) {
  using namespace weir::wire;
  const auto number = [&] { return static_cast<std::uint32_t>(attack.random()); };
  Mad mad;
  mad.transaction = attack.random();
  switch (attack.below(6)) {
    case 0:
      mad.message = CmRep{.local_id = number(), .remote_id = number(), .qpn = number() & 0xffffff};
      break;
    case 1:
      mad.message = CmRej{.local_id = number(), .remote_id = number(), .reason = 28};
      break;
    case 2:
      mad.message = CmRtu{.local_id = number(), .remote_id = number()};
      break;
    case 3:
      mad.message = CmDreq{.local_id = number(), .remote_id = number(), .remote_qpn = number() & 0xffffff};
      break;
    default: {
      CmReq request;
      request.local_id = number();
      request.service_id = rdma_service_id(port_space_tcp, port);
      request.ca_guid = attack.random();
      request.qpn = 2 + number() % 0xfffff0;
      request.starting_psn = number() & 0xffffff;
      request.responder_resources = request.initiator_depth = 1;
      request.retry_count = request.rnr_retry_count = 7;
      request.path_mtu = 3;
      request.remote_cm_timeout = request.local_cm_timeout = 20;
      request.max_cm_retries = 15;
      request.local_gid = mapped(from.ip());
      request.remote_gid = mapped(server_address);
      request.hop_limit = 64;
      RdmaCmHeader header;
      header.source_port = static_cast<std::uint16_t>(1024 + attack.below(60'000));
      std::ranges::copy(from.ip(), header.source.begin() + 12);
      std::ranges::copy(server_address, header.destination.begin() + 12);
      encode_rdma_cm_header(header, std::span(request.private_data).first<rdma_cm_header_bytes>());
      mad.message = request;
    }
  }
  return mad;
}

}  // namespace

void send_junk(Attack& attack) {
  std::vector<Stranger> all = strangers();
  const std::vector<std::byte> payload(1024);
  for (;;) {
    for (int i = 0; i < packets_at_once; ++i)
      all[attack.below(all.size())].send(junk(attack, payload), attack.below(2) == 0);
    attack.did();
    breathe();
  }
}

void forge_connection_messages(Attack& attack) {
  std::vector<Stranger> all = strangers();
  const std::uint16_t port = rpc::parse_address(attack.address)->port;
  for (;;) {
    for (int i = 0; i < packets_at_once; ++i) {
      Stranger& from = all[attack.below(all.size())];
      const auto mad = encode_mad(forged_message(attack, from, port));
      Packet packet;
      packet.bth.opcode = weir::wire::opcode(weir::wire::Service::ud, weir::wire::Operation::send_only);
      packet.bth.destination = weir::wire::cm_qpn;
      packet.bth.psn = static_cast<std::uint32_t>(attack.below(1 << 24));
      packet.deth = {weir::wire::cm_qkey, weir::wire::cm_qpn};
      packet.payload = mad;
      from.send(packet, true);
    }
    attack.did();
    breathe();
  }
}

}  // namespace weir::bystander::wire
