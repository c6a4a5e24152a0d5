// Any packets reach a queue pair in any order. The responder must ask its target only for what a message
// allows. The requester must write only where a request reads to, and complete in order. Neither may keep
// more than its limit, and both must send only packets that we accept ourselves.
//
// An input is a number of steps: a packet made of the bytes that follow, with a PSN near the expected ones;
// time that passes; or a work request.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "rnic/packet/requester.hpp"
#include "rnic/packet/responder.hpp"
#include "wire/byte_order.hpp"

namespace {

using namespace weir;
using namespace weir::rnic;
using namespace weir::rnic::packet;

constexpr std::uint32_t mtu = 256, receive_bytes = 1000;
constexpr std::uint64_t exposed_bytes = 4096;
constexpr std::uint32_t srqs = 2;

void must(bool holds) {
  if (!holds) std::abort();
}

class StrictTarget final : public Target {
 public:
  std::uint8_t mood = 0;  // of the next answer
  bool is_xrc = false;

  Verdict select(std::uint32_t srqn) override {
    must(!dead_ && is_xrc && srqn < srqs);
    must(!begun_ || srqn == selected_);  // a message stays with its SRQ
    selected_ = srqn;
    return answer();
  }
  Verdict begin_send() override {
    must(!dead_ && !begun_);
    return begin(receive_bytes);
  }
  Verdict begin_write(std::uint64_t addr, std::uint32_t, std::uint64_t length) override {
    must(!dead_ && !begun_);
    if (length != 0 && (addr >= exposed_bytes || length > exposed_bytes - addr))
      return end(Verdict::nak_access);
    return begin(length);
  }
  Verdict append(std::uint64_t offset, std::span<const std::byte> bytes) override {
    must(!dead_ && begun_ && !bytes.empty() && bytes.size() <= mtu);
    must(offset == appended_ || offset == last_at_);  // or once more
    last_at_ = offset;
    if (offset + bytes.size() > room_) return end(Verdict::nak_invalid);
    appended_ = offset + bytes.size();
    return answer();
  }
  Verdict finish(const Ending& ending) override {
    must(!dead_ && begun_ && ending.byte_len == appended_);
    const Verdict verdict = answer();
    if (verdict == Verdict::done) begun_ = false;
    return verdict;
  }
  Verdict check_read(std::uint64_t addr, std::uint32_t, std::uint64_t length) override {
    must(!dead_);
    if (length != 0 && (addr >= exposed_bytes || length > exposed_bytes - addr))
      return end(Verdict::nak_access);
    return answer();
  }
  Verdict read(std::uint32_t srqn, std::uint64_t addr, std::uint32_t, std::uint32_t length,
               std::span<iovec> room, std::uint32_t& used) override {
    must(is_xrc ? srqn < srqs : srqn == 0);
    must(length != 0 && length <= mtu && addr + length <= exposed_bytes);
    if (dead_ || mood == 0xee) return Verdict::nak_operational;
    room[used++] = {exposed_.data() + addr, length};
    return Verdict::done;
  }
  Verdict atomic(SendOpcode, std::uint64_t, std::uint32_t, std::uint64_t, std::uint64_t,
                 std::uint64_t& before) override {
    must(!dead_);
    before = ++executed_;
    return answer();
  }
  Verdict atomic_write(std::uint64_t, std::uint32_t, std::span<const std::byte, atomic_bytes>) override {
    must(!dead_);
    return answer();
  }
  void refuse(Verdict verdict) override {
    must(!dead_);
    must(verdict >= Verdict::nak_invalid);
    dead_ = true;
  }

 private:
  Verdict begin(std::uint64_t room) {
    const Verdict verdict = answer();
    if (verdict != Verdict::done) return verdict;
    begun_ = true;
    room_ = room;
    appended_ = last_at_ = 0;
    return verdict;
  }
  Verdict answer() {
    switch (mood & 63) {
      case 1:
        return Verdict::rnr;
      case 2:
        return Verdict::lost;
      case 3:
        return end(Verdict::nak_access);
      case 4:
        return end(Verdict::nak_operational);
      default:
        return Verdict::done;
    }
  }
  Verdict end(Verdict verdict) {
    dead_ = true;
    return verdict;
  }
  bool dead_ = false, begun_ = false;
  std::uint32_t selected_ = 0;
  std::uint64_t room_ = 0, appended_ = 0, last_at_ = 0, executed_ = 0;
  std::array<std::byte, exposed_bytes> exposed_{};
};

class StrictSource final : public SendSource {
 public:
  std::vector<WorkRequest> requests;
  std::vector<std::uint32_t> lengths;
  std::uint32_t completed = 0;
  bool failed = false;

  std::uint32_t posted() const override { return static_cast<std::uint32_t>(requests.size()); }
  WcStatus look_up(std::uint32_t wqe, WorkRequest& request, Gather& pieces) override {
    must(wqe < requests.size());
    request = requests[wqe];
    pieces.count = 1;
    pieces.pieces[0] = {memory_.data(), lengths[wqe]};
    pieces.bytes = lengths[wqe];
    return (request.rkey & 31) == 31 ? WcStatus::loc_prot_err : WcStatus::success;
  }
  WcStatus execute_local(std::uint32_t) override { return WcStatus::success; }
  bool scatter(std::uint32_t wqe, const Gather&, std::uint64_t offset,
               std::span<const std::byte> bytes) override {
    must(!failed && wqe == completed && offset + bytes.size() <= lengths[wqe]);
    std::ranges::copy(bytes, memory_.begin() + static_cast<std::ptrdiff_t>(offset));
    return true;
  }
  void complete(std::uint32_t wqe, WcStatus status, std::uint64_t) override {
    must(!failed && wqe == completed++);
    failed = status != WcStatus::success;
  }

 private:
  std::array<std::byte, 4096> memory_{};
};

void check(const Outgoing& out) {
  std::vector<std::byte> bytes(out.headers().begin(), out.headers().end());
  std::size_t payload = 0;
  for (const iovec& piece : out.payload()) payload += piece.iov_len;
  must(payload == out.payload_bytes && payload <= mtu);
  bytes.resize(bytes.size() + payload + out.pad);
  must(bytes.size() + wire::icrc_bytes == out.udp_payload());
  must(wire::parse_transport(bytes).has_value());
}

wire::Packet packet_from(wire::Reader& from, Psn near, wire::Service service) {
  wire::Packet packet;
  packet.bth.opcode = static_cast<std::uint8_t>(from.number(1));
  if (packet.bth.opcode < 0x80)
    packet.bth.opcode = wire::opcode(service, static_cast<wire::Operation>(packet.bth.opcode & 31));
  const auto flags = static_cast<std::uint8_t>(from.number(1));
  packet.bth.ack_request = flags & 1;
  packet.bth.solicited = flags & 2;
  packet.bth.psn = (near + static_cast<std::uint32_t>(static_cast<std::int8_t>(from.number(1)))).value();
  packet.reth.addr = packet.atomic.addr = from.number(2);
  packet.reth.length = static_cast<std::uint32_t>(from.number(2));
  if (flags & 4) packet.reth.length <<= 20;
  packet.aeth.syndrome = static_cast<std::uint8_t>(from.number(1));
  const std::size_t sizes[] = {0, 1, mtu, mtu, 8, mtu - 1, mtu + 1, packet.reth.length % (mtu + 1)};
  static constexpr std::array<std::byte, mtu + 1> payload{};
  const unsigned has = wire::extensions_of(packet.bth.opcode).value_or(0);
  if (has & wire::extension::payload) packet.payload = std::span(payload).first(sizes[flags >> 5]);
  if (has & wire::extension::xrceth) packet.srqn = (flags >> 3) % srqs;
  return packet;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  wire::Reader from(std::as_bytes(std::span(data, size)));
  const auto setting = static_cast<std::uint8_t>(from.number(1));
  const auto service = (setting & 4) != 0 ? wire::Service::xrc : wire::Service::rc;
  StrictTarget target;
  target.is_xrc = service == wire::Service::xrc;
  StrictSource source;
  Window window;
  Requester requester(source, window,
                      {.service = service,
                       .path_mtu = mtu,
                       .first_psn = Psn(0xfffffa),
                       .timeout = 10,
                       .retry_cnt = 3,
                       .rnr_retry = 2,
                       .max_rd_atomic = static_cast<std::uint8_t>(1 + (setting & 3))});
  Responder responder(target, {.service = service,
                               .path_mtu = mtu,
                               .first_psn = Psn(0xfffffc),
                               .min_rnr_timer = 1,
                               .max_dest_rd_atomic = static_cast<std::uint8_t>(setting >> 6)});
  std::array<iovec, max_sge> room;
  Outgoing out;
  out.room = room;
  std::uint64_t now_ns = 1;
  for (int steps = 0; from.left() > 0 && steps < 2000; ++steps) {
    const auto step = static_cast<std::uint8_t>(from.number(1));
    target.mood = static_cast<std::uint8_t>(from.number(1));
    if (step < 128) {
      const bool answer = step >= 64;
      const wire::Packet packet =
          packet_from(from, answer ? requester.next_psn() : responder.expected(), service);
      if (Responder::is_answer(packet))
        requester.receive(now_ns, packet);
      else
        responder.receive(packet);
    } else if (step < 192 && source.requests.size() < 64) {
      WorkRequest request;
      constexpr SendOpcode opcodes[] = {SendOpcode::send,          SendOpcode::rdma_write,
                                        SendOpcode::rdma_read,     SendOpcode::fetch_and_add,
                                        SendOpcode::atomic_write,  SendOpcode::local_invalidate,
                                        SendOpcode::send_with_imm, SendOpcode::send_with_invalidate};
      request.opcode = opcodes[step & 7];
      request.fence = step & 8;
      request.rkey = static_cast<std::uint32_t>(from.number(1));
      request.srqn = request.rkey % srqs;
      const bool word =
          request.opcode == SendOpcode::fetch_and_add || request.opcode == SendOpcode::atomic_write;
      source.lengths.push_back(word ? atomic_bytes : static_cast<std::uint32_t>(from.number(2) % 4096));
      source.requests.push_back(request);
    } else {
      now_ns += from.number(2) * 1000;
      requester.on_time(now_ns);
    }
    if (step & 16) continue;  // several before anything is sent
    for (int most = 0; most < 64 && responder.next_packet(out); ++most) check(out);
    for (int most = 0; most < 64 && requester.next_packet(now_ns, out); ++most) {
      check(out);
      must(!requester.failed());
    }
    must(window.in_flight() >= 0);
    // Nothing is left over that nobody can send.
    int most = 0;
    while (responder.has_packet() && ++most < 10'000)
      must(responder.next_packet(out) || !responder.has_packet());
    must(most < 10'000);
  }
  must(source.failed == requester.failed());
  return 0;
}
