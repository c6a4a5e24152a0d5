// Reads the packets of the bottle's ends with an independent program: Wireshark's dissectors must
// see in them what was meant.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include "bottle.hpp"
#include "tests/scratch_directory.hpp"
#include "wire/pcapng.hpp"
#include "wire/roce.hpp"

namespace weir::rnic::packet::test {
namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string all;
  std::array<char, 4096> part;
  while (pipe)
    if (const std::size_t read = std::fread(part.data(), 1, part.size(), pipe.get()); read != 0)
      all.append(part.data(), read);
    else
      break;
  return all;
}

TEST(Tshark, reads_every_packet_as_it_was_meant) {
  if (output_of("tshark --version 2>/dev/null").empty()) GTEST_SKIP() << "tshark is not installed";
  Bottle bottle({.path_mtu = 256, .max_rd_atomic = 2});
  std::vector<std::byte> capture = wire::pcapng_section("bottle", "wire0");
  std::vector<std::string> meant;
  bottle.watch = [&](std::uint32_t from, const wire::Packet& packet, auto) {
    wire::Frame frame;
    frame.packet = packet;
    wire::Ipv4 ip{.source = {10, 0, 0, 1}, .destination = {10, 0, 0, 2}};
    if (from == 1) std::swap(ip.source, ip.destination);
    frame.route.ip = ip;
    wire::append_pcapng_packet(capture, bottle.now_ns, wire::encode(frame), SIZE_MAX);
    const unsigned has = wire::extensions_of(packet.bth.opcode).value_or(0);
    std::ostringstream line;
    line << unsigned{packet.bth.opcode} << '|' << packet.bth.psn << '|' << packet.bth.ack_request << '|';
    const bool known = packet.bth.opcode != wire::opcode(wire::Service::rc, wire::Operation::atomic_write);
    if (known && (has & wire::extension::reth)) line << packet.reth.length;
    line << '|';
    if (has & wire::extension::aeth) line << packet.aeth.msn;
    meant.push_back(line.str());
  };
  bottle.fate = [](std::uint64_t n) { return Fate{.dropped = n % 7 == 3}; };
  std::mt19937_64 random(11);
  for (const Operation& op : random_operations(random, 25, 256)) bottle.ends[0]->post(*bottle.ends[1], op);
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");

  const weir::test::ScratchDirectory directory;
  const std::string file = directory.file("bottle.pcapng");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(capture.data()), static_cast<std::streamsize>(capture.size()));
  // ATOMIC WRITE is newer than Debian's.
  std::istringstream read(
      output_of("tshark -r '" + file +
                "' -T fields -E separator='|' -e infiniband.bth.opcode -e infiniband.bth.psn"
                " -e infiniband.bth.a -e infiniband.reth.dmalen -e infiniband.aeth.msn"
                " 2>/dev/null"));
  std::string line;
  std::size_t number = 0;
  for (; std::getline(read, line); ++number) {
    ASSERT_LT(number, meant.size());
    EXPECT_EQ(line, meant[number]) << "packet " << number;
  }
  EXPECT_EQ(number, meant.size());
  EXPECT_GT(number, 50u);
}

}  // namespace
}  // namespace weir::rnic::packet::test
