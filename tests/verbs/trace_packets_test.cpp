// The packets that work requests stand for: segments, packet numbers, and their answers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "tests/scratch_directory.hpp"
#include "verbs/trace/log_lines.hpp"
#include "verbs/trace/packets.hpp"
#include "verbs/trace/trace_file.hpp"

namespace weir::verbs {
namespace {

using rnic::SendOpcode;
using rnic::WcStatus;
using wire::Operation;
using wire::Service;

struct Sent {
  std::uint8_t opcode;
  std::uint32_t destination, psn;
  std::size_t payload;
  std::uint8_t syndrome;
  std::uint32_t msn;
  bool operator==(const Sent&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sent& s) {
  return out << std::hex << int{s.opcode} << " to " << s.destination << " psn " << s.psn << std::dec << " "
             << s.payload << " bytes, syndrome " << int{s.syndrome} << " msn " << s.msn;
}

constexpr std::uint32_t own = 0x4002, peer = 0x8002, start = 100;
constexpr auto ack = wire::ack_without_credit;
std::uint8_t rc(Operation operation) { return wire::opcode(Service::rc, operation); }

class TracePackets : public testing::Test {
 protected:
  TracePackets() {
    with.own = rnic::Qpn(own);
    with.peer = rnic::Qpn(peer);
    with.mtu = 256;
    with.psn = start;
    wqe.signaled = true;
  }
  wire::Frame remember(const wire::Frame& frame) {
    // What is written must be what is read.
    const auto bytes = wire::encode(frame);
    EXPECT_TRUE(wire::parse(bytes));
    const wire::Packet& p = frame.packet;
    const auto has = wire::extensions_of(p.bth.opcode).value_or(0);
    const bool answer = has & wire::extension::aeth;
    sent.push_back({p.bth.opcode, p.bth.destination, p.bth.psn, p.payload.size(),
                    answer ? p.aeth.syndrome : std::uint8_t{0}, answer ? p.aeth.msn : 0});
    return frame;
  }
  std::vector<Sent> execute(SendOpcode opcode, std::size_t bytes, WcStatus status = WcStatus::success) {
    wqe.opcode = opcode;
    sent.clear();
    const std::vector<std::byte> payload(bytes, std::byte{5});
    packets_of(with, wqe, status, payload, [this](const wire::Frame& frame) { last = remember(frame); });
    last.packet.payload = {};
    return sent;
  }

  Conversation with;
  rnic::SendWqe wqe{};
  std::vector<Sent> sent;
  wire::Frame last;
};

TEST_F(TracePackets, a_write_is_segmented_and_acknowledged_once) {
  EXPECT_EQ(execute(SendOpcode::rdma_write, 600),
            (std::vector<Sent>{{rc(Operation::write_first), peer, start, 256, 0, 0},
                               {rc(Operation::write_middle), peer, start + 1, 256, 0, 0},
                               {rc(Operation::write_last), peer, start + 2, 88, 0, 0},
                               {rc(Operation::acknowledge), own, start + 2, 0, ack, 1}}));
  EXPECT_EQ(with.psn, start + 3);
}

TEST_F(TracePackets, one_packet_carries_what_fits_and_an_empty_message_has_one_too) {
  for (const std::size_t bytes : {0u, 1u, 256u}) {
    const auto packets = execute(SendOpcode::send, bytes);
    ASSERT_EQ(packets.size(), 2u) << bytes;
    EXPECT_EQ(packets[0].opcode, rc(Operation::send_only));
    EXPECT_EQ(packets[0].payload, bytes);
  }
}

TEST_F(TracePackets, the_last_packet_has_what_the_message_carries) {
  const std::pair<SendOpcode, Operation> rows[] = {
      {SendOpcode::rdma_write_with_imm, Operation::write_last_imm},
      {SendOpcode::send_with_imm, Operation::send_last_imm},
      {SendOpcode::send_with_invalidate, Operation::send_last_invalidate},
      {SendOpcode::send, Operation::send_last}};
  for (const auto& [opcode, operation] : rows) EXPECT_EQ(execute(opcode, 300).at(1).opcode, rc(operation));
}

TEST_F(TracePackets, a_read_takes_a_number_for_each_packet_of_its_answer) {
  EXPECT_EQ(execute(SendOpcode::rdma_read, 600),
            (std::vector<Sent>{{rc(Operation::read_request), peer, start, 0, 0, 0},
                               {rc(Operation::read_response_first), own, start, 256, ack, 1},
                               {rc(Operation::read_response_middle), own, start + 1, 256, 0, 0},
                               {rc(Operation::read_response_last), own, start + 2, 88, ack, 1}}));
  EXPECT_EQ(execute(SendOpcode::send, 8).at(0).psn, start + 3);
}

TEST_F(TracePackets, an_atomic_is_answered_with_the_value_from_before) {
  EXPECT_EQ(execute(SendOpcode::fetch_and_add, 8),
            (std::vector<Sent>{{rc(Operation::fetch_add), peer, start, 0, 0, 0},
                               {rc(Operation::atomic_acknowledge), own, start, 0, ack, 1}}));
  EXPECT_EQ(last.packet.original, 0x0505050505050505u);
}

TEST_F(TracePackets, an_error_of_the_responder_is_a_nak_and_takes_no_number) {
  const std::pair<WcStatus, std::uint8_t> rows[] = {{WcStatus::rem_access_err, wire::nak_remote_access},
                                                    {WcStatus::rem_inv_req_err, wire::nak_invalid_request},
                                                    {WcStatus::rem_op_err, wire::nak_remote_operational}};
  for (const auto& [status, code] : rows)
    EXPECT_EQ(execute(SendOpcode::rdma_write, 600, status),
              (std::vector<Sent>{{rc(Operation::write_first), peer, start, 256, 0, 0},
                                 {rc(Operation::acknowledge), own, start, 0,
                                  static_cast<std::uint8_t>(wire::nak | code), 0}}));
  EXPECT_EQ(with.psn, start);
}

TEST_F(TracePackets, what_never_left_has_no_packets) {
  EXPECT_TRUE(execute(SendOpcode::send, 8, WcStatus::loc_prot_err).empty());
  EXPECT_TRUE(execute(SendOpcode::bind_window, 0).empty());
  EXPECT_TRUE(execute(SendOpcode::local_invalidate, 0).empty());
}

TEST_F(TracePackets, a_send_without_a_receive_is_refused_at_its_first_packet) {
  wqe.opcode = SendOpcode::send;
  const std::vector<std::byte> payload(600);
  packets_of_refusal(with, wqe, payload, 12, [this](const wire::Frame& frame) { remember(frame); });
  EXPECT_EQ(sent, (std::vector<Sent>{{rc(Operation::send_first), peer, start, 256, 0, 0},
                                     {rc(Operation::acknowledge), own, start, 0, wire::rnr_nak | 12, 0}}));
}

TEST_F(TracePackets, unreliable_connections_are_not_answered) {
  with.type = rnic::QpType::uc;
  EXPECT_EQ(execute(SendOpcode::send, 300).size(), 2u);
  EXPECT_EQ(sent[0].opcode, wire::opcode(Service::uc, Operation::send_first));
}

TEST_F(TracePackets, a_datagram_goes_where_its_request_says) {
  with.type = rnic::QpType::ud;
  with.mtu = 4096;
  wqe.datagram = {rnic::Qpn(0xc002), 0x1234, nullptr};
  EXPECT_EQ(
      execute(SendOpcode::send, 2000),
      (std::vector<Sent>{{wire::opcode(Service::ud, Operation::send_only), 0xc002, start, 2000, 0, 0}}));
  EXPECT_EQ(last.packet.deth.qkey, 0x1234u);
  EXPECT_EQ(last.packet.deth.source, own);
}

TEST_F(TracePackets, packet_numbers_wrap_at_24_bits) {
  with.psn = 0xffffff;
  const auto packets = execute(SendOpcode::send, 300);
  EXPECT_EQ(packets[0].psn, 0xffffffu);
  EXPECT_EQ(packets[1].psn, 0u);
  EXPECT_EQ(with.psn, 1u);
}

TEST(TraceLines, say_what_was_posted_and_what_came_of_it) {
  // A WQE's pieces follow it.
  struct {
    rnic::SendWqe wqe{};
    rnic::Sge sges[2] = {{0x1000, 8, 0x101}, {0x2000, 16, 0x202}};
  } posted;
  posted.wqe.opcode = SendOpcode::rdma_write_with_imm;
  posted.wqe.wr_id = 7;
  posted.wqe.num_sge = 2;
  posted.wqe.remote_addr = 0xabc;
  posted.wqe.rkey = 0x303;
  posted.wqe.imm_be = 0x01000000;
  posted.wqe.signaled = true;
  EXPECT_EQ(posted_line(posted.wqe, rnic::QpType::rc),
            "post WRITE_IMM wr_id 0x7: 24 bytes, from 0x1000 (8) key 0x101, from 0x2000 (16) key 0x202, "
            "remote 0xabc key "
            "0x303, imm 0x00000001, signaled");
  rnic::WorkCompletion wc{};
  wc.wr_id = 9;
  wc.opcode = rnic::WcOpcode::recv;
  wc.byte_len = 24;
  wc.src_qpn = 0x8002;
  EXPECT_EQ(completion_line(wc), "comp RECV wr_id 0x9: success, 24 bytes, from 8002");
  ibv_mr region{};
  region.addr = reinterpret_cast<void*>(0x1000);
  region.length = 64;
  region.lkey = 0x101;
  EXPECT_EQ(registration_line(region, 0x1000, 0), "register 0x1000: 64 bytes, key 0x101, local-read");
  EXPECT_EQ(registration_line(region, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED),
            "register 0x1000: 64 bytes, key 0x101, remotely 0x0, local-write zero-based");
  wc.status = WcStatus::rem_access_err;
  EXPECT_EQ(completion_line(wc), "comp wr_id 0x9: remote access error");
}

class TraceFiles : public testing::Test {
 protected:
  std::string content() const {
    std::string all;
    std::FILE* file = std::fopen(path_.c_str(), "r");
    for (int c; (c = std::fgetc(file)) != EOF;) all += static_cast<char>(c);
    std::fclose(file);
    return all;
  }
  static std::vector<std::byte> bytes(std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
  }
  const test::ScratchDirectory scratch_;
  const std::string path_ = scratch_.path() + "/trace";
};

TEST_F(TraceFiles, of_several_writers_have_one_head) {
  auto a = TraceFile::open(path_, 1000, bytes("head\n")), b = TraceFile::open(path_, 1000, bytes("head\n"));
  ASSERT_TRUE(a && b);
  a->append(bytes("a\n"));
  b->append(bytes("b\n"));
  b->flush();
  a->flush();
  EXPECT_EQ(content(), "head\nb\na\n");
  EXPECT_EQ(a->dropped() + b->dropped(), 0u);
}

TEST_F(TraceFiles, hold_the_whole_records_that_fit_and_none_behind_one_that_does_not) {
  auto file = TraceFile::open(path_, 12, bytes("head\n"));
  ASSERT_TRUE(file);
  for (const char* record : {"one\n", "twenty\n", "x\n"}) file->append(bytes(record));
  file->flush();
  file->append(bytes("y\n"));
  file->flush();
  EXPECT_EQ(content(), "head\none\n");
  EXPECT_EQ(file->dropped(), 3u);
}

TEST_F(TraceFiles, count_what_their_limit_kept_out_and_still_have_a_last_word) {
  auto file = TraceFile::open(path_, 8, {});
  ASSERT_TRUE(file);
  file->append(bytes("123456\n"));
  file->flush();
  file->append(bytes("more\n"));
  file->append(bytes("more\n"));
  file->flush();
  EXPECT_EQ(file->dropped(), 2u);
  file->append_regardless(bytes("end\n"));
  EXPECT_EQ(content(), "123456\nend\n");
}

}  // namespace
}  // namespace weir::verbs
