// Replays captures of Linux's Soft-RoCE: our responder answers the kernel's requester, and our requester
// talks to the kernel's responder. We must send what the kernel sent, except for what the protocol leaves
// free: the opcode with which a part of a READ is answered again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

#include "rnic/packet/requester.hpp"
#include "rnic/packet/responder.hpp"
#include "tests/wire/captures.hpp"
#include "wire/byte_order.hpp"
#include "wire/mad.hpp"

namespace weir::rnic::packet::test {
namespace {

using wire::Packet;

// A capture from its connection's point of view.
struct Dialogue {
  std::vector<std::vector<std::byte>> bytes;  // what the packets are views into
  struct Line {
    bool from_client = false;
    Packet packet;
  };
  std::vector<Line> lines;
  std::uint32_t client_qpn = 0, server_qpn = 0;
  Psn client_psn, server_psn;  // with which each begins to send
  std::uint64_t exposed_at = 0;
  std::uint32_t rkey = 0;
};

std::vector<std::uint8_t> source_of(const wire::Frame& frame) {
  return std::visit(
      [](const auto& ip) { return std::vector<std::uint8_t>(ip.source.begin(), ip.source.end()); },
      frame.route.ip);
}

Dialogue dialogue_of(const std::string& name) {
  Dialogue dialogue;
  std::vector<std::uint8_t> client;  // both may have the same QPN
  dialogue.bytes = wire::test::packets_of(name);
  for (const auto& bytes : dialogue.bytes) {
    const auto frame = wire::parse(bytes);
    if (!frame) continue;
    const Packet& packet = frame->packet;
    if (packet.bth.destination == wire::cm_qpn) {
      const auto mad = wire::parse_mad(packet.payload);
      if (!mad) continue;
      if (const auto* req = std::get_if<wire::CmReq>(&mad->message)) {
        client = source_of(*frame);
        dialogue.client_qpn = req->qpn;
        dialogue.server_psn = Psn(req->starting_psn);
      } else if (const auto* rep = std::get_if<wire::CmRep>(&mad->message)) {
        dialogue.server_qpn = rep->qpn;
        dialogue.client_psn = Psn(rep->starting_psn);
        wire::Reader from(rep->private_data);
        dialogue.exposed_at = from.number<std::uint64_t>();
        dialogue.rkey = from.number<std::uint32_t>();
      }
      continue;
    }
    dialogue.lines.push_back({source_of(*frame) == client, packet});
  }
  return dialogue;
}

std::string told(const Packet& packet, bool with_opcode) {
  std::string text = with_opcode ? "opcode " + std::to_string(packet.bth.opcode) : "data";
  text += " psn " + std::to_string(packet.bth.psn);
  const unsigned has = wire::extensions_of(packet.bth.opcode).value_or(0);
  if ((has & wire::extension::aeth) && with_opcode)
    text += " aeth " + std::to_string(packet.aeth.syndrome) + "/" + std::to_string(packet.aeth.msn);
  if (has & wire::extension::atomic_ack_eth) text += " was " + std::to_string(packet.original);
  text += " payload";
  for (const std::byte byte : packet.payload.first(std::min<std::size_t>(packet.payload.size(), 8)))
    text += " " + std::to_string(std::to_integer<int>(byte));
  return text + " of " + std::to_string(packet.payload.size());
}

Packet sent(const Outgoing& out, std::vector<std::byte>& bytes) {
  bytes.assign(out.headers().begin(), out.headers().end());
  for (const iovec& piece : out.payload()) {
    const auto* at = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), at, at + piece.iov_len);
  }
  bytes.resize(bytes.size() + out.pad);
  const auto packet = wire::parse_transport(bytes);
  EXPECT_TRUE(packet);
  return packet.value_or(Packet{});
}

// The server of the captures: 64 KiB whose byte i is 7 i.
class Server final : public Target {
 public:
  explicit Server(const Dialogue& dialogue)
      : base_(dialogue.exposed_at), rkey_(dialogue.rkey), memory_(65536) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>(7 * i);
  }
  bool has_receive = true;

  Verdict select(std::uint32_t) override { return Verdict::nak_invalid; }
  Verdict begin_send() override { return has_receive ? Verdict::done : Verdict::rnr; }
  Verdict begin_write(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) override {
    begun_at_ = addr;
    return reach(addr, rkey, length);
  }
  Verdict append(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (begun_at_) std::ranges::copy(bytes, at(*begun_at_ + offset));
    return Verdict::done;
  }
  Verdict finish(const Ending&) override {
    begun_at_.reset();
    return Verdict::done;
  }
  Verdict check_read(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) override {
    return reach(addr, rkey, length);
  }
  Verdict read(std::uint32_t, std::uint64_t addr, std::uint32_t, std::uint32_t length, std::span<iovec> room,
               std::uint32_t& used) override {
    room[used++] = {at(addr), length};
    return Verdict::done;
  }
  Verdict atomic(SendOpcode opcode, std::uint64_t addr, std::uint32_t rkey, std::uint64_t compare_add,
                 std::uint64_t swap, std::uint64_t& before) override {
    if (reach(addr, rkey, atomic_bytes) != Verdict::done) return Verdict::nak_access;
    std::memcpy(&before, at(addr), sizeof before);
    std::uint64_t after = before + compare_add;
    if (opcode == SendOpcode::compare_and_swap) after = before == compare_add ? swap : before;
    std::memcpy(at(addr), &after, sizeof after);
    return Verdict::done;
  }
  Verdict atomic_write(std::uint64_t, std::uint32_t, std::span<const std::byte, atomic_bytes>) override {
    return Verdict::nak_invalid;
  }
  void refuse(Verdict) override {}

 private:
  Verdict reach(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) {
    const bool inside = rkey == rkey_ && addr >= base_ && addr + length <= base_ + memory_.size();
    return inside ? Verdict::done : Verdict::nak_access;
  }
  std::byte* at(std::uint64_t addr) { return memory_.data() + (addr - base_); }
  std::uint64_t base_;
  std::uint32_t rkey_;
  std::vector<std::byte> memory_;
  std::optional<std::uint64_t> begun_at_;
};

struct Answered {
  const char* capture;
  bool all_captured = true;  // else some answers were lost before the capture
  bool each_ack = true;      // else only the last: the kernel acknowledges each duplicate, we a batch
};

bool is_ack(const Packet& packet) {
  return packet.bth.opcode == wire::opcode(wire::Service::rc, wire::Operation::acknowledge) &&
         packet.aeth.syndrome >> 5 == 0;
}
class KernelsRequester : public testing::TestWithParam<Answered> {};
INSTANTIATE_TEST_SUITE_P(Captures, KernelsRequester,
                         testing::Values(Answered{"rc_basic.pcap"}, Answered{"rc_multi.pcap"},
                                         Answered{"rc_rnr.pcap"}, Answered{"rc_nak_rkey.pcap"},
                                         Answered{"rc_ipv6.pcap"}, Answered{"rc_loss_c2s.pcap", true, false},
                                         Answered{"rc_loss_s2c.pcap", false}),
                         [](const auto& each) {
                           const std::string name = each.param.capture;
                           return name.substr(0, name.find('.'));
                         });

TEST_P(KernelsRequester, is_answered_as_the_kernel_answers) {
  const Dialogue dialogue = dialogue_of(GetParam().capture);
  Server server(dialogue);
  Responder responder(server, {.destination = dialogue.client_qpn,
                               .path_mtu = 1024,
                               .first_psn = dialogue.client_psn,
                               .min_rnr_timer = 16,
                               .max_dest_rd_atomic = 4});
  std::array<iovec, max_sge> room;
  Outgoing out;
  out.room = room;
  std::vector<std::byte> bytes;
  std::deque<std::string> ours;
  std::string our_last_ack, their_last_ack;
  std::set<std::uint32_t> answered;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < dialogue.lines.size(); ++i) {
    const auto& line = dialogue.lines[i];
    if (!line.from_client && is_ack(line.packet)) their_last_ack = told(line.packet, true);
    if (!GetParam().each_ack && is_ack(line.packet)) continue;
    if (!line.from_client) {
      // For a repeated READ response the payload matters, not the first opcode.
      const bool again = !answered.insert(line.packet.bth.psn).second && line.packet.bth.opcode >= 13 &&
                         line.packet.bth.opcode <= 16;
      const std::string kernel = told(line.packet, GetParam().all_captured && !again);
      bool found = false;
      while (!found && !ours.empty()) {
        found = ours.front() == kernel || (again && ours.front().ends_with(kernel.substr(4)));
        ASSERT_TRUE(found || !GetParam().all_captured)
            << "line " << i << ": " << ours.front() << ", not " << kernel;
        ours.pop_front();
      }
      ASSERT_TRUE(found) << "line " << i << ": nothing, not " << kernel;
      ++compared;
      continue;
    }
    ASSERT_TRUE(ours.empty() || !GetParam().all_captured || !GetParam().each_ack)
        << "line " << i << ": " << ours.front();
    // The server posted its receive after it had sent an RNR NAK.
    server.has_receive =
        i + 1 == dialogue.lines.size() || dialogue.lines[i + 1].packet.aeth.syndrome >> 5 != 1;
    responder.receive(line.packet);
    while (responder.next_packet(out)) {
      const Packet answer = sent(out, bytes);
      if (is_ack(answer)) our_last_ack = told(answer, true);
      if (!GetParam().each_ack && is_ack(answer)) continue;
      ours.push_back(told(answer, GetParam().all_captured));
    }
  }
  EXPECT_GT(compared, 1u);
  EXPECT_EQ(our_last_ack, their_last_ack);
}

// The client's work requests, read off its packets.
class Client final : public SendSource {
 public:
  struct Posted {
    WorkRequest request;
    std::vector<std::byte> memory;
  };
  std::deque<Posted> queue;
  std::vector<WcStatus> completions;

  void post(const Packet& first, std::span<const Dialogue::Line> rest) {
    Posted& posted = queue.emplace_back();
    const auto op = static_cast<wire::Operation>(first.bth.opcode & 31);
    posted.request.remote_addr = first.reth.addr;
    posted.request.rkey = first.reth.rkey;
    if (op == wire::Operation::read_request) {
      posted.request.opcode = SendOpcode::rdma_read;
      posted.memory.resize(first.reth.length);
      return;
    }
    if (op == wire::Operation::fetch_add || op == wire::Operation::compare_swap) {
      const bool adds = op == wire::Operation::fetch_add;
      posted.request.opcode = adds ? SendOpcode::fetch_and_add : SendOpcode::compare_and_swap;
      posted.request.compare_add = adds ? first.atomic.swap_or_add : first.atomic.compare;
      posted.request.swap = adds ? 0 : first.atomic.swap_or_add;
      posted.request.remote_addr = first.atomic.addr;
      posted.request.rkey = first.atomic.rkey;
      posted.memory.resize(atomic_bytes);
      return;
    }
    const bool writes = op >= wire::Operation::write_first && op <= wire::Operation::write_only_imm;
    posted.request.opcode = writes ? SendOpcode::rdma_write : SendOpcode::send;
    for (const auto& line : rest) {
      if (!line.from_client) continue;
      posted.memory.insert(posted.memory.end(), line.packet.payload.begin(), line.packet.payload.end());
      const unsigned has = wire::extensions_of(line.packet.bth.opcode).value_or(0);
      const auto last = static_cast<wire::Operation>(line.packet.bth.opcode & 31);
      if (has & wire::extension::imm) {
        posted.request.opcode = writes ? SendOpcode::rdma_write_with_imm : SendOpcode::send_with_imm;
        posted.request.imm_be = wire::swap_network(line.packet.imm);
      }
      if (has & wire::extension::ieth) {
        posted.request.opcode = SendOpcode::send_with_invalidate;
        posted.request.imm_be = line.packet.invalidate;
      }
      posted.request.solicited = line.packet.bth.solicited;
      if (last != wire::Operation::send_first && last != wire::Operation::send_middle &&
          last != wire::Operation::write_first && last != wire::Operation::write_middle)
        return;
    }
  }
  std::uint32_t posted() const override { return static_cast<std::uint32_t>(queue.size()); }
  WcStatus look_up(std::uint32_t wqe, WorkRequest& request, Gather& pieces) override {
    request = queue.at(wqe).request;
    auto& memory = queue.at(wqe).memory;
    pieces.count = memory.empty() ? 0 : 1;
    pieces.pieces[0] = {memory.data(), memory.size()};
    pieces.bytes = memory.size();
    return WcStatus::success;
  }
  WcStatus execute_local(std::uint32_t) override { return WcStatus::success; }
  bool scatter(std::uint32_t wqe, const Gather&, std::uint64_t offset,
               std::span<const std::byte> bytes) override {
    std::ranges::copy(bytes, queue.at(wqe).memory.begin() + static_cast<std::ptrdiff_t>(offset));
    return true;
  }
  void complete(std::uint32_t, WcStatus status, std::uint64_t) override { completions.push_back(status); }
};

class KernelsResponder : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Captures, KernelsResponder,
                         testing::Values("rc_basic.pcap", "rc_multi.pcap", "rc_ipv6.pcap", "rc_nak_rkey.pcap",
                                         "rc_nak_len.pcap", "user_space_responder.pcap"));

TEST_P(KernelsResponder, gets_the_packets_that_the_kernel_sends) {
  const Dialogue dialogue = dialogue_of(GetParam());
  Client client;
  Window window;
  Requester requester(client, window,
                      {.destination = dialogue.server_qpn,
                       .path_mtu = 1024,
                       .first_psn = dialogue.client_psn,
                       .max_rd_atomic = 4});
  std::array<iovec, max_sge> room;
  Outgoing out;
  out.room = room;
  std::vector<std::byte> bytes;
  std::uint64_t now_ns = 1;
  std::set<std::uint32_t> seen;
  std::size_t answers = 0;
  for (std::size_t i = 0; i < dialogue.lines.size(); ++i) {
    const auto& line = dialogue.lines[i];
    if (!line.from_client) {
      requester.receive(now_ns += 1000, line.packet);
      ++answers;
      continue;
    }
    ASSERT_TRUE(seen.insert(line.packet.bth.psn).second) << "a packet that was lost";
    const auto op = static_cast<wire::Operation>(line.packet.bth.opcode & 31);
    const unsigned has = wire::extensions_of(line.packet.bth.opcode).value_or(0);
    const bool opens = (has & (wire::extension::reth | wire::extension::atomic_eth)) != 0 ||
                       op == wire::Operation::send_first || op == wire::Operation::send_only ||
                       op == wire::Operation::send_only_imm || op == wire::Operation::send_only_invalidate;
    if (opens) client.post(line.packet, std::span(dialogue.lines).subspan(i));
    ASSERT_TRUE(requester.next_packet(now_ns += 1000, out)) << "line " << i;
    const Packet ours = sent(out, bytes);
    std::array<std::byte, wire::longest_headers> kernel{}, mine{};
    const auto length = wire::encode_headers(line.packet, line.packet.payload.size(), kernel);
    EXPECT_EQ(wire::encode_headers(ours, ours.payload.size(), mine), length);
    EXPECT_EQ(mine, kernel) << "line " << i;
    EXPECT_TRUE(std::ranges::equal(ours.payload, line.packet.payload)) << "line " << i;
  }
  EXPECT_GT(answers, 1u);
  EXPECT_EQ(client.completions.size(), client.queue.size());
  EXPECT_EQ(requester.counts().retransmitted, 0u);
  EXPECT_EQ(requester.failed(), std::string(GetParam()).find("nak") != std::string::npos);
}

}  // namespace
}  // namespace weir::rnic::packet::test
