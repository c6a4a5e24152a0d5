// A thousand random scripts against two ends of a connection in a bottle, as one of them sees it: what
// happened to each packet is what was written, and the connection recovers from it.
#include <gtest/gtest.h>

#include <random>

#include "faults/language.hpp"
#include "faults/packet_faults.hpp"
#include "tests/rnic/packet/bottle.hpp"

namespace weir::faults {
namespace {

using rnic::packet::test::Bottle;
using rnic::packet::test::Fate;

constexpr std::uint32_t qpn = 0x11, path_mtu = 256;

// One line about a PSN of its own, so that each packet has at most one line about it.
struct Line {
  std::string act;
  std::uint32_t psn;
  std::uint32_t times;
  bool out;
  std::string text() const {
    return act + " psn=" + std::to_string(psn) + " times=" + std::to_string(times) +
           " direction=" + (out ? "out" : "in");
  }
};

struct Request {
  bool out;
  std::uint32_t psn;
};

Verdict expected_of(const std::vector<Line>& script, const std::vector<Request>& before, Request packet) {
  Verdict verdict;
  for (const Line& line : script) {
    if (line.psn != packet.psn || line.out != packet.out) continue;
    const auto transmissions = std::ranges::count_if(
        before, [&](const Request& past) { return past.psn == packet.psn && past.out == packet.out; });
    if (transmissions >= line.times) continue;
    verdict.drop = line.act == "drop";
    verdict.corrupt = line.act == "corrupt";
    verdict.copies = line.act == "duplicate 2" ? 2 : 0;
    verdict.delay_ns = line.act == "delay 150us" ? 150'000 : 0;
  }
  return verdict;
}

bool same(const Verdict& one, const Verdict& other) {
  return one.drop == other.drop && one.corrupt == other.corrupt && one.copies == other.copies &&
         one.delay_ns == other.delay_ns && !one.mark && one.overtaken_by == 0;
}

std::vector<Line> random_script(std::mt19937_64& random) {
  constexpr std::string_view acts[] = {"drop", "corrupt", "duplicate 2", "delay 150us"};
  std::vector<Line> script;
  for (std::uint32_t psn = static_cast<std::uint32_t>(random() % 4); script.size() < 4;
       psn += 1 + random() % 6)
    script.push_back({std::string(acts[random() % 4]), psn, static_cast<std::uint32_t>(1 + random() % 3),
                      random() % 2 == 0});
  return script;
}

void play(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<Line> script = random_script(random);
  std::string text;
  for (const Line& line : script) text += line.text() + "\n";
  PacketFaults faults(read_plan(text).value(), 1000);
  faults.queue_pair_made(qpn);

  Bottle bottle({.path_mtu = path_mtu, .timeout = 18, .ipv4 = false}, static_cast<std::uint32_t>(seed));
  for (const Direction direction : {Direction::out, Direction::in})
    faults.first_psn(qpn, direction, bottle.options.first_psn.value());
  std::vector<Request> requests;
  std::vector<std::uint64_t> fired(script.size());
  Verdict verdict;
  bottle.watch = [&](std::uint32_t from, const wire::Packet& packet, std::span<const std::byte> bytes) {
    verdict = faults.judge({from == 0 ? Direction::out : Direction::in, qpn, bytes}, bottle.now_ns);
    if (rnic::packet::Responder::is_answer(packet)) {
      EXPECT_TRUE(verdict.is_untouched()) << text;
      return;
    }
    const Request request{from == 0, (packet.bth.psn - bottle.options.first_psn.value()) & 0xffffff};
    const Verdict expected = expected_of(script, requests, request);
    EXPECT_TRUE(same(verdict, expected)) << text << "PSN " << request.psn << (request.out ? " out" : " in");
    for (std::size_t i = 0; i < script.size() && !expected.is_untouched(); ++i)
      fired[i] += script[i].psn == request.psn && script[i].out == request.out;
    requests.push_back(request);
  };
  bottle.fate = [&](std::uint64_t) {
    return Fate{.dropped = verdict.drop,
                .corrupted = verdict.corrupt,
                .copies = static_cast<std::uint32_t>(1 + verdict.copies),
                .delayed_ns = verdict.delay_ns};
  };
  for (const std::uint32_t from : {0u, 1u})
    for (const auto& operation : rnic::packet::test::random_operations(random, 6, path_mtu))
      bottle.ends[from]->post(*bottle.ends[1 - from], operation);
  ASSERT_TRUE(bottle.run()) << text;
  ASSERT_EQ(bottle.differences(), "") << text;
  for (std::size_t i = 0; i < script.size(); ++i) {
    ASSERT_EQ(faults.tallies()[i].fired, fired[i]) << text;
    for (const Firing& firing : faults.tallies()[i].firings) {
      ASSERT_EQ(firing.psn, script[i].psn) << text;
      ASSERT_EQ(firing.qp, 1u);
      ASSERT_EQ(firing.direction == Direction::out, script[i].out) << text;
    }
  }
}

TEST(FaultScripts, observed_faults_equal_those_written) {
  for (std::uint64_t seed = 1; seed <= 1000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    play(seed);
  }
}

}  // namespace
}  // namespace weir::faults
