// Any packets reach an unreliable connection in any order: its responder asks its target only for what a
// message allows, and completes only messages that arrived whole.
//
// An input is a number of packets, each made of the bytes that follow. Its PSN is near the expected one or,
// if a flag says so, anywhere.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "rnic/packet/unreliable_responder.hpp"
#include "wire/byte_order.hpp"

namespace {

using namespace weir;
using namespace weir::rnic;
using namespace weir::rnic::packet;

constexpr std::uint32_t mtu = 256;

void must(bool holds) {
  if (!holds) std::abort();
}

class StrictTarget final : public Target {
 public:
  std::uint8_t mood = 0;  // of the next answer

  Verdict select(std::uint32_t) override { return never(); }
  Verdict begin_send() override { return begin(1000); }
  Verdict begin_write(std::uint64_t, std::uint32_t, std::uint64_t length) override { return begin(length); }
  Verdict append(std::uint64_t offset, std::span<const std::byte> bytes) override {
    must(begun_ && offset == appended_ && !bytes.empty() && bytes.size() <= mtu);
    if (offset + bytes.size() > room_) return dropped(Verdict::nak_invalid);
    appended_ += bytes.size();
    return answer();
  }
  Verdict finish(const Ending& ending) override {
    must(begun_ && ending.byte_len == appended_ && !ending.invalidate);
    begun_ = false;
    return answer();
  }
  Verdict check_read(std::uint64_t, std::uint32_t, std::uint64_t) override { return never(); }
  Verdict read(std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t, std::span<iovec>,
               std::uint32_t&) override {
    return never();
  }
  Verdict atomic(SendOpcode, std::uint64_t, std::uint32_t, std::uint64_t, std::uint64_t,
                 std::uint64_t&) override {
    return never();
  }
  Verdict atomic_write(std::uint64_t, std::uint32_t, std::span<const std::byte, atomic_bytes>) override {
    return never();
  }
  void refuse(Verdict) override { never(); }

 private:
  static Verdict never() { std::abort(); }
  Verdict begin(std::uint64_t room) {
    begun_ = false;  // the one before is dropped
    const Verdict verdict = answer();
    begun_ = verdict == Verdict::done;
    room_ = room;
    appended_ = 0;
    return verdict;
  }
  Verdict answer() {
    constexpr Verdict moods[] = {Verdict::rnr, Verdict::lost, Verdict::nak_access, Verdict::nak_operational};
    return (mood & 15) < std::size(moods) ? dropped(moods[mood & 15]) : Verdict::done;
  }
  Verdict dropped(Verdict why) {
    begun_ = false;
    return why;
  }
  bool begun_ = false;
  std::uint64_t room_ = 0, appended_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  wire::Reader from(std::as_bytes(std::span(data, size)));
  StrictTarget target;
  UnreliableResponder responder(target, mtu, Psn(0xfffffc));
  std::uint64_t arrived = 0;
  static constexpr std::array<std::byte, mtu + 1> payload{};
  for (; from.left() > 0 && arrived < 4000; ++arrived) {
    target.mood = static_cast<std::uint8_t>(from.number(1));
    wire::Packet packet;
    packet.bth.opcode = static_cast<std::uint8_t>(from.number(1));
    if (packet.bth.opcode < 0x80)
      packet.bth.opcode = static_cast<std::uint8_t>(0x20 | (packet.bth.opcode & 31));
    const auto flags = static_cast<std::uint8_t>(from.number(1));
    const auto near = static_cast<std::int8_t>(from.number(1));
    packet.bth.psn =
        (responder.expected() + static_cast<std::uint32_t>(near) * ((flags & 1) ? 0x10101 : 1)).value();
    packet.bth.solicited = flags & 2;
    packet.reth.length = static_cast<std::uint32_t>(from.number(2)) << ((flags & 4) ? 20 : 0);
    const std::size_t sizes[] = {0, 1, mtu, mtu, 8, mtu - 1, mtu + 1, packet.reth.length % (mtu + 1)};
    const unsigned has = wire::extensions_of(packet.bth.opcode).value_or(0);
    if (has & wire::extension::payload) packet.payload = std::span(payload).first(sizes[flags >> 5]);
    responder.receive(packet);
  }
  const ResponderCounts& counts = responder.counts();
  must(counts.packets + counts.duplicates + counts.dropped == arrived);
  return 0;
}
