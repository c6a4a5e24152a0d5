// Misdeeds in plain verbs: a peer that breaks all rules of the protocol over RDMA.
#include <arpa/inet.h>

#include <array>
#include <cstring>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "rdma/channel/channel_wire.hpp"
#include "rpc/address.hpp"
#include "tests/bystander/misdeeds.hpp"
#include "tests/bystander/requests.hpp"
#include "tests/rdma/raw_peer.hpp"

namespace weir::bystander::verbs {
namespace {

using rdma::testing_support::RawPeer;

void breathe() {
  const timespec time{0, 100'000};
  ::nanosleep(&time, nullptr);
}

// RPC over plain RDMA uses a Channel, everything else a Stream.
bool through_channel(const Attack& attack) {
  return attack.protocol == Protocol::rpc && attack.over("rdma:");
}

rdma::Endpoint endpoint_of(const Attack& attack) {
  const auto at = rpc::parse_address(attack.address);
  return {asio::ip::make_address(at.value().host), at->port};
}

std::unique_ptr<RawPeer> connect(Attack& attack) {
  auto peer = std::make_unique<RawPeer>(breathe);
  if (!through_channel(attack)) {
    peer->connect(endpoint_of(attack));
    return peer;
  }
  rdma::channel_wire::Greeting greeting;
  greeting.rendezvous_depth = 8;
  greeting.window = 32;
  greeting.block_bytes = 16 << 10;
  greeting.max_message = 1 << 20;
  const auto bytes = rdma::channel_wire::encode(greeting);
  peer->connect(endpoint_of(attack), bytes);
  return peer;
}

void fill(Attack& attack, RawPeer& peer, const std::string& with) {
  for (std::size_t i = 0; i < 2048; ++i)
    peer.memory()[i] =
        static_cast<std::byte>(with.empty() ? attack.random() : std::uint64_t(with[i % with.size()]));
}

// Peers with which `one` does something; a few of them stay connected.
using One = void (*)(Attack&, RawPeer&);
void again(Attack& attack, One one) {
  engine_of(attack.io);  // loads the libraries
  std::vector<std::unique_ptr<RawPeer>> kept;
  for (;;) {
    try {
      auto peer = connect(attack);
      one(attack, *peer);
      if (attack.below(4) == 0) kept.push_back(std::move(peer));
      if (kept.size() > 16) kept.erase(kept.begin());
    } catch (const std::runtime_error&) {
      breathe();  // the server ended that connection, or accepted none
    }
    attack.did();
  }
}

// A message that no peer may ever be sent: ends the attacker, which the test notices.
void look_for_victims(RawPeer& peer) {
  const std::span<const std::byte> memory = peer.memory();
  const std::string_view text(reinterpret_cast<const char*>(memory.data()), memory.size());
  if (const std::size_t at = text.find("victim-"); at != std::string_view::npos)
    throw std::logic_error("the server sent a victim's bytes: " + std::string(text.substr(at, 40)));
}

// Any record or none, with an immediate about frames, credits and fetches that do not exist.
void lie_in_channel(Attack& attack, RawPeer& peer) {
  for (std::uint64_t i = 1 + attack.below(20); i > 0; --i) {
    fill(attack, peer, {});
    peer.memory()[0] = static_cast<std::byte>(attack.below(7));
    std::array<std::byte, 256> frame;
    std::memcpy(frame.data(), peer.memory().data(), frame.size());
    const auto immediate = static_cast<std::uint32_t>(attack.random());
    peer.send_with_imm(std::span(frame).first(attack.below(frame.size())),
                       attack.below(2) == 0 ? immediate : (1u + immediate % 2) << 28 | immediate % 8);
    peer.poll();
  }
}

void lie(Attack& attack, RawPeer& peer) {
  if (through_channel(attack)) return lie_in_channel(attack, peer);
  const rdma::RegisterXferMemory at = peer.announcement();
  peer.send(rdma::encode(peer.own_buffer()));
  std::uint64_t said = 0;
  for (std::uint64_t i = 1 + attack.below(20); i > 0; --i) {
    const std::uint64_t claims[] = {1, 27, 64, attack.below(4096), at.length_bytes, 0xffffffff};
    const std::uint64_t claimed = claims[attack.below(std::size(claims))];
    const std::uint64_t written = attack.below(3) == 0 ? attack.below(100) : 0;
    fill(attack, peer, echo_request(attack.protocol, 1, 10));
    if (said + written > at.length_bytes) break;
    peer.write_with_imm(at, said, written, static_cast<std::uint32_t>(claimed));
    said += claimed;
    peer.poll();
  }
  for (int turns = 0; turns < 20; ++turns) peer.poll();
  look_for_victims(peer);
}

void never_announce_one(Attack& attack, RawPeer& peer) {
  if (through_channel(attack)) {  // there: accepts messages, but never acknowledges them
    for (;;) {
      rdma::channel_wire::Immediate immediate;
      const std::string request = echo_request(attack.protocol, 1, 900);
      std::vector<std::byte> frame(rdma::channel_wire::padded(8 + request.size()));
      rdma::channel_wire::put_message_header(frame.data(), static_cast<std::uint32_t>(request.size()));
      std::memcpy(frame.data() + 8, request.data(), request.size());
      peer.send_with_imm(frame, rdma::channel_wire::encode(immediate));
      peer.poll();
      attack.did();
      if (!peer.failures().empty()) return;
    }
  }
  std::string requests;
  while (requests.size() < 2000) requests += echo_request(attack.protocol, 1, 20);
  fill(attack, peer, requests);
  // Until the server rightly grants no more room.
  const rdma::RegisterXferMemory at = peer.announcement();
  for (std::uint64_t offset = 0; offset + 2000 <= at.length_bytes; offset += 2000) {
    peer.write_with_imm(at, offset, 2000, 2000);
    attack.did();
    peer.poll();
    if (!peer.failures().empty()) return;
  }
}

void announce_wild_one(Attack& attack, RawPeer& peer) {
  if (through_channel(attack)) {  // there: offers a message at a wild address
    std::array<std::byte, 64> frame{};
    rdma::channel_wire::Offer offer;
    offer.address = attack.below(2) == 0 ? attack.random() : peer.own_buffer().addr;
    offer.length = offer.total = 1 + static_cast<std::uint32_t>(attack.below(1 << 20));
    offer.rkey = attack.below(2) == 0 ? static_cast<std::uint32_t>(attack.random()) : peer.own_buffer().rkey;
    rdma::channel_wire::put_offer(frame.data(), offer);
    const rdma::channel_wire::Immediate immediate;
    peer.send_with_imm(std::span(frame).first(rdma::channel_wire::offer_record_bytes(offer)),
                       rdma::channel_wire::encode(immediate));
    for (int turns = 0; turns < 20; ++turns) peer.poll();
    return look_for_victims(peer);
  }
  const rdma::RegisterXferMemory at = peer.announcement();
  rdma::RegisterXferMemory own = peer.own_buffer();
  switch (attack.below(4)) {
    case 0:
      own.addr = attack.random();
      break;
    case 1:
      own.rkey = static_cast<std::uint32_t>(attack.random());
      break;
    case 2:
      own = at;  // the server's own buffer
      break;
    default:
      own.length_bytes = 0xffffffff;
  }
  peer.send(rdma::encode(own));
  const std::string request = echo_request(attack.protocol, 1, 500);
  fill(attack, peer, request);
  peer.write_with_imm(at, 0, request.size(), static_cast<std::uint32_t>(request.size()));
  for (int turns = 0; turns < 20; ++turns) peer.poll();
}

void odd_control_one(Attack& attack, RawPeer& peer) {
  for (std::uint64_t i = 1 + attack.below(40); i > 0; --i) {
    std::array<std::byte, 64> message;
    for (std::byte& byte : message) byte = static_cast<std::byte>(attack.random());
    message[0] = std::byte{0};
    message[1] = static_cast<std::byte>(attack.below(6));
    peer.send(std::span(message).first(attack.below(3) == 0 ? attack.below(65) : 32));
    peer.poll();
  }
}

}  // namespace

void lie_about_bytes(Attack& attack) { again(attack, lie); }
void never_announce(Attack& attack) { again(attack, never_announce_one); }
void announce_wild(Attack& attack) { again(attack, announce_wild_one); }
void send_odd_control(Attack& attack) { again(attack, odd_control_one); }

// An identifier without a queue pair gets CONNECT_RESPONSE, and would have to answer with rdma_establish.
void leave_cm_half_open(Attack& attack) {
  constexpr std::size_t most = 1000;
  engine_of(attack.io);
  auto channel = rdma::EventChannel::create();
  std::vector<rdma::CmId> ids;
  rdma::Endpoint at = endpoint_of(attack);
  // Other events arrive, too: for identifiers whose turn is over.
  const auto happens = [&](const rdma_cm_id* id, rdma_cm_event_type wanted) {
    for (int turns = 0; turns < 1000; ++turns) {
      const auto next = channel->next();
      if (!next) breathe();
      if (next && next->id == id) return next->type == wanted;
    }
    return false;
  };
  for (;;) {
    if (ids.size() == most) ids.erase(ids.begin(), ids.begin() + most / 2);
    auto id = rdma::CmId::create(channel.value());
    if (!id) {
      breathe();
      continue;
    }
    ids.push_back(std::move(*id));
    rdma_cm_id* raw = ids.back().get();
    if (rdma_resolve_addr(raw, nullptr, at.data(), 2000) != 0 || !happens(raw, RDMA_CM_EVENT_ADDR_RESOLVED))
      continue;
    if (rdma_resolve_route(raw, 2000) != 0 || !happens(raw, RDMA_CM_EVENT_ROUTE_RESOLVED)) continue;
    rdma_conn_param parameters{};
    parameters.responder_resources = parameters.initiator_depth = 1;
    parameters.retry_count = 6;
    parameters.rnr_retry_count = 7;
    parameters.qp_num = 0x1234;
    const auto greeting = rdma::channel_wire::encode(rdma::channel_wire::Greeting{8, 32, 16 << 10, 1 << 20});
    if (through_channel(attack)) {
      parameters.private_data = greeting.data();
      parameters.private_data_len = greeting.size();
    }
    if (rdma_connect(raw, &parameters) != 0) continue;
    attack.did();
    if (attack.below(2) == 0) happens(raw, RDMA_CM_EVENT_CONNECT_RESPONSE);
  }
}

}  // namespace weir::bystander::verbs
