// What a packet from a forger may cost: how many bytes go out for those that came, and the time of one. It
// knows addresses and queue pair numbers. A table of what else it knows; everything else is drawn from a
// seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "bottle.hpp"
#include "wire/roce.hpp"

namespace weir::rnic::packet::test {
namespace {

using Wire = wire::Operation;

constexpr std::size_t udp_and_ip_bytes = 28;

struct Knowledge {
  const char* what;
  std::uint32_t psns_behind, psns_ahead;  // of the next one, where a guess may lie
  bool answers;                           // it forges answers
  double bytes_a_byte;                    // that may go out
};

// Only what could be the peer's own is answered: by one acknowledgement of 20 bytes, or one that asks for
// what is missing.
constexpr Knowledge table[] = {
    {"any PSN", 0x7fffff, 0x7fffff, false, 0.1},     {"a PSN of the window", 60'000, 60'000, false, 1.1},
    {"a PSN executed lately", 1'000, 0, false, 1.1}, {"the next PSNs", 0, 16, false, 1.1},
    {"any answer", 0x7fffff, 0x7fffff, true, 0},     {"an answer of the window", 1'000, 1'000, true, 0},
};

std::uint64_t seed() {
  const char* const given = std::getenv("WEIR_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20271;
}

double processor_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

class Forgeries {
 public:
  Forgeries(const Knowledge& knows, std::uint64_t seed) : knows_(knows), random_(seed) {}

  wire::Packet draw(Psn expected) {
    for (;;) {
      wire::Packet packet;
      packet.bth.opcode = wire::opcode(wire::Service::rc, static_cast<Wire>(random_() % 32));
      if (!wire::extensions_of(packet.bth.opcode) || Responder::is_answer(packet) != knows_.answers) continue;
      const auto range = std::uint64_t{knows_.psns_behind} + knows_.psns_ahead + 1;
      const auto offset = static_cast<std::uint32_t>(random_() % range) - knows_.psns_behind;
      packet.bth.psn = (expected + offset).value();
      if (Psn(packet.bth.psn) == expected) continue;  // that is a hit, which no check can tell
      packet.bth.ack_request = random_() % 2 != 0;
      packet.bth.solicited = random_() % 2 != 0;
      packet.reth = {exposed_at + random_() % exposed_bytes, exposed_key,
                     static_cast<std::uint32_t>(random_() % exposed_bytes)};
      packet.aeth.syndrome = static_cast<std::uint8_t>(random_());
      packet.atomic.addr = exposed_at;
      packet.atomic.rkey = exposed_key;
      packet.payload = std::span(payload_).first(random_() % (payload_.size() + 1));
      return packet;
    }
  }

 private:
  const Knowledge& knows_;
  std::mt19937_64 random_;
  const std::vector<std::byte> payload_ = std::vector<std::byte>(256, std::byte{7});
};

std::size_t bytes_of(const wire::Packet& packet) {
  std::array<std::byte, wire::longest_headers> headers;
  return udp_and_ip_bytes + encode_headers(packet, packet.payload.size(), headers) + packet.payload.size() +
         wire::pad_of(packet.payload.size()) + wire::icrc_bytes;
}

TEST(WireAmplification, forged_packets_are_answered_by_less_than_came) {
  constexpr double us_a_packet = 20;  // 1.5 here, most of it to read the clock
  constexpr int packets = 20'000;
  for (const Knowledge& row : table) {
    Bottle bottle({.path_mtu = 256});
    std::mt19937_64 random(seed());
    for (const Operation& op : random_operations(random, 30, 256)) bottle.ends[0]->post(*bottle.ends[1], op);
    ASSERT_TRUE(bottle.run());
    Forgeries forgeries(row, seed());
    End& target = *bottle.ends[1];
    std::size_t in = 0, out = 0;
    double us = 0;
    for (int i = 0; i < packets; ++i) {
      const wire::Packet packet = forgeries.draw(target.responder->expected());
      in += bytes_of(packet);
      const double begun = processor_us();
      if (row.answers)
        target.requester->receive(bottle.now_ns, packet);
      else
        target.responder->receive(packet);
      std::array<iovec, max_sge> room;
      Outgoing answer;
      answer.room = room;
      while (target.responder->next_packet(answer)) out += udp_and_ip_bytes + answer.udp_payload();
      us += processor_us() - begun;
    }
    EXPECT_LE(static_cast<double>(out), row.bytes_a_byte * static_cast<double>(in))
        << row.what << ", WEIR_SEED=" << seed();
    EXPECT_LE(us / packets, us_a_packet) << row.what;
    EXPECT_FALSE(target.responder->failed()) << row.what;
    std::printf("%-24s %5.2f bytes out for a byte, %5.2f us a packet\n", row.what,
                static_cast<double>(out) / static_cast<double>(in), us / packets);
  }
}

}  // namespace
}  // namespace weir::rnic::packet::test
