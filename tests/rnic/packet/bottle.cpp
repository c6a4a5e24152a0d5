#include "bottle.hpp"

#include <algorithm>

namespace weir::rnic::packet::test {
namespace {

constexpr std::uint32_t qpn_of_end[] = {0x11, 0x12};

wire::IcrcRoute route_of(bool ipv4, std::uint8_t source, std::uint8_t destination) {
  const auto address = [&](std::uint8_t last) {
    wire::IcrcRoute::Address of{};
    if (ipv4) {
      of[10] = of[11] = 0xff;
      of[12] = 10;
    } else {
      of[0] = 0xfd;
    }
    of[15] = last;
    return of;
  };
  return wire::IcrcRoute({address(source), address(destination), 0xc123, wire::roce_port});
}

std::unique_ptr<End> make_end(const Options& options, std::uint32_t number) {
  auto end = std::make_unique<End>(options);
  end->requester = std::make_unique<Requester>(*end, end->window,
                                               RequesterAttributes{.service = options.service,
                                                                   .destination = qpn_of_end[1 - number],
                                                                   .path_mtu = options.path_mtu,
                                                                   .first_psn = options.first_psn,
                                                                   .timeout = options.timeout,
                                                                   .retry_cnt = options.retry_cnt,
                                                                   .rnr_retry = options.rnr_retry,
                                                                   .max_rd_atomic = options.max_rd_atomic});
  end->responder =
      std::make_unique<Responder>(*end, ResponderAttributes{.service = options.service,
                                                            .destination = qpn_of_end[1 - number],
                                                            .path_mtu = options.path_mtu,
                                                            .first_psn = options.first_psn,
                                                            .min_rnr_timer = options.min_rnr_timer,
                                                            .max_dest_rd_atomic = options.max_rd_atomic});
  return end;
}

}  // namespace

Bottle::Bottle(const Options& with, std::uint32_t seed)
    : ends{make_end(with, 0), make_end(with, 1)},
      options(with),
      random_(seed),
      routes_{route_of(with.ipv4, 1, 2), route_of(with.ipv4, 2, 1)} {}

void Bottle::send(std::uint32_t from, const Outgoing& out) {
  std::vector<std::byte> bytes;
  bytes.reserve(out.udp_payload());  // what is parsed below is a view into it
  bytes.insert(bytes.end(), out.headers().begin(), out.headers().end());
  for (const iovec& piece : out.payload()) {
    const auto* at = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), at, at + piece.iov_len);
  }
  bytes.resize(bytes.size() + out.pad);
  EXPECT_EQ(bytes.size() + wire::icrc_bytes, out.udp_payload());
  const auto parsed = wire::parse_transport(bytes);
  EXPECT_TRUE(parsed) << "we send what we do not take";
  const std::uint16_t id = options.ipv4 ? ids_[from]++ : std::uint16_t{0};
  const auto icrc = route(from).of(bytes, id);
  bytes.insert(bytes.end(), icrc.begin(), icrc.end());
  if (watch && parsed) watch(from, *parsed, bytes);

  const Fate comes_of_it = fate(packets++);
  if (comes_of_it.dropped) return;
  if (comes_of_it.corrupted) {
    const std::size_t bit = random_() % (bytes.size() * 8);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (std::uint32_t copy = 0; copy < comes_of_it.copies; ++copy) {
    const std::uint64_t arrives =
        now_ns + options.one_way_ns + comes_of_it.delayed_ns + copy * 3 * microsecond;
    on_the_wire_.push({arrives, packets * 4 + copy, 1 - from, comes_of_it.corrupted, bytes});
  }
}

void Bottle::deliver(const OnTheWire& packet) {
  const auto id = route(1 - packet.to).check(packet.bytes, senders_[packet.to].likely());
  if (!id || (options.ipv4 && !senders_[packet.to].believes(*id))) {
    // The IPv4 ID of a very late packet is no longer close.
    EXPECT_TRUE(packet.corrupted || (id && options.ipv4)) << "a sound packet was refused";
    return;
  }
  const auto parsed =
      wire::parse_transport(std::span(packet.bytes).first(packet.bytes.size() - wire::icrc_bytes));
  if (!parsed) return;  // byte 4 of the BTH is not covered, and never looked at
  receive(packet.to, *parsed);
}

void Bottle::receive(std::uint32_t to, const wire::Packet& packet) {
  End& end = *ends[to];
  if (Responder::is_answer(packet))
    end.requester->receive(now_ns, packet);
  else
    end.responder->receive(packet);
}

void Bottle::forge(std::uint32_t to, const wire::Packet& packet) {
  std::vector<std::byte> bytes(wire::longest_headers);
  bytes.resize(
      wire::encode_headers(packet, packet.payload.size(), std::span(bytes).first<wire::longest_headers>()));
  bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
  bytes.resize(bytes.size() + wire::pad_of(packet.payload.size()));
  if (const auto parsed = wire::parse_transport(bytes)) receive(to, *parsed);
}

void Bottle::pump(std::uint32_t number) {
  End& end = *ends[number];
  std::array<iovec, max_sge> room;
  Outgoing out;
  out.room = room;
  while (end.responder->next_packet(out)) send(number, out);
  while (end.requester->next_packet(now_ns, out)) send(number, out);
}

void Bottle::pump() {
  pump(0);
  pump(1);
}

bool Bottle::run(std::uint64_t longest_ns) {
  const std::uint64_t until = now_ns + longest_ns;
  pump();
  for (;;) {
    std::optional<std::uint64_t> next;
    const auto consider = [&](std::optional<std::uint64_t> when) {
      if (when && (!next || *when < *next)) next = when;
    };
    if (!on_the_wire_.empty()) consider(on_the_wire_.top().arrives_ns);
    if (!acts_.empty()) consider(acts_.begin()->first);
    for (const auto& end : ends) consider(end->requester->deadline_ns());
    if (!next) return true;
    if (*next > until) return false;
    now_ns = std::max(now_ns, *next);
    while (!on_the_wire_.empty() && on_the_wire_.top().arrives_ns <= now_ns) {
      deliver(on_the_wire_.top());
      on_the_wire_.pop();
    }
    while (!acts_.empty() && acts_.begin()->first <= now_ns) {
      acts_.begin()->second();
      acts_.erase(acts_.begin());
    }
    for (const auto& end : ends) end->requester->on_time(now_ns);
    pump();
  }
}

std::string Bottle::differences() {
  std::string all;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    End& end = *ends[i];
    const std::string name = "end " + std::to_string(i) + ": ";
    for (const std::string& each : end.wrong) all += name + each + "\n";
    if (end.completions.size() != end.operations.size())
      all += name + std::to_string(end.completions.size()) + " of " + std::to_string(end.operations.size()) +
             " completions\n";
    for (const WcStatus status : end.completions)
      if (status != WcStatus::success)
        all += name + "status " + std::to_string(static_cast<int>(status)) + "\n";
    if (!end.expected_messages.empty())
      all += name + std::to_string(end.expected_messages.size()) + " messages did not come\n";
    if (end.exposed != end.model_exposed) all += name + "memory differs\n";
    if (end.window.in_flight() != 0)
      all += name + "the window keeps " + std::to_string(end.window.in_flight()) + "\n";
    if (end.refused != 0) all += name + "refused something\n";
  }
  return all;
}

std::vector<Operation> random_operations(std::mt19937_64& random, std::size_t count, std::uint32_t path_mtu) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  constexpr SendOpcode opcodes[] = {SendOpcode::send,          SendOpcode::send_with_imm,
                                    SendOpcode::rdma_write,    SendOpcode::rdma_write_with_imm,
                                    SendOpcode::rdma_read,     SendOpcode::compare_and_swap,
                                    SendOpcode::fetch_and_add, SendOpcode::send_with_invalidate,
                                    SendOpcode::atomic_write};
  const std::uint32_t sizes[] = {0,
                                 1,
                                 3,
                                 64,
                                 path_mtu - 1,
                                 path_mtu,
                                 path_mtu + 1,
                                 2 * path_mtu,
                                 3 * path_mtu + 5,
                                 std::min(longest, static_cast<std::uint32_t>(below(20 * path_mtu))),
                                 longest};
  std::vector<Operation> all(count);
  bool read_changeable = false;
  for (std::size_t i = 0; i < count; ++i) {
    Operation& op = all[i];
    op.opcode = opcodes[below(std::size(opcodes))];
    op.length = sizes[below(below(4) == 0 ? std::size(sizes) : std::size(sizes) - 2)];
    op.solicited = below(2) != 0 && op.opcode != SendOpcode::rdma_write && op.opcode != SendOpcode::rdma_read;
    op.in_pieces = below(2) != 0;
    op.signaled = below(2) != 0;
    op.imm = static_cast<std::uint32_t>(random());
    const bool fetches = op.opcode == SendOpcode::rdma_read || op.opcode == SendOpcode::compare_and_swap ||
                         op.opcode == SendOpcode::fetch_and_add;
    if (fetches)
      op.local = answers_at + below(memory_bytes - answers_at - longest);
    else
      op.local = below(answers_at - longest);
    // What is read is sometimes what others change: they must wait for the answer then.
    op.remote = op.opcode == SendOpcode::rdma_read && below(2) != 0
                    ? below(constant_bytes - longest)
                    : constant_bytes + below(exposed_bytes - constant_bytes - longest);
    if (op.opcode == SendOpcode::compare_and_swap || op.opcode == SendOpcode::fetch_and_add ||
        op.opcode == SendOpcode::atomic_write) {
      op.length = atomic_bytes;
      op.remote &= ~7ull;
      op.compare_add = below(2) != 0 ? random() : 7;
      op.swap = random();
      op.solicited = false;
    }
    if (op.opcode == SendOpcode::rdma_read) {
      read_changeable |= op.remote >= constant_bytes;
    } else if (read_changeable && op.opcode != SendOpcode::send && op.opcode != SendOpcode::send_with_imm) {
      op.fence = true;
      read_changeable = false;
    }
  }
  return all;
}

void spread_over_srqs(std::vector<Operation>& operations) {
  constexpr std::uint32_t srqs = 3;
  std::uint32_t next = 0;
  for (Operation& each : operations) each.srqn = next++ % srqs;
}

}  // namespace weir::rnic::packet::test
