// What the nodes of a network answer to subnet management packets, as ibnetdiscover and iblinkinfo ask them.
#include "verbs/view/subnet.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace weir::verbs {
namespace {

constexpr std::string_view topology =
    "switch leaf1\nswitch spine1\nhost h1 10.77.0.1\nhost h2 10.77.0.2\n"
    "cable h1 leaf1 up\ncable h2 leaf1 down\ncable leaf1 spine1 up\n";
constexpr std::uint8_t node_description = 0x10, node_info = 0x11, switch_info = 0x12, port_info = 0x15,
                       forwarding = 0x19;

Mad directed(std::uint8_t attribute, std::vector<std::uint8_t> path, std::uint8_t modifier = 0) {
  Mad mad{1, 0x81, 1, 1};
  mad[7] = static_cast<std::uint8_t>(path.size());
  mad[17] = attribute;
  mad[23] = modifier;
  std::memset(&mad[32], 0xff, 4);  // from here, all of it directed
  std::ranges::copy(path, mad.begin() + 129);
  return mad;
}

Mad routed(std::uint8_t attribute, std::uint8_t modifier = 0) {
  Mad mad = directed(attribute, {}, modifier);
  mad[1] = 1;
  return mad;
}

std::uint64_t guid(std::string_view name) { return name.size(); }

std::string name_in(const Mad& mad) { return reinterpret_cast<const char*>(&mad[64]); }
unsigned status_of(const Mad& mad) { return static_cast<unsigned>(mad[4] << 8 | mad[5]); }

class SubnetTest : public testing::Test {
 protected:
  const Subnet subnet = read_subnet(topology, "h1", guid).value();
};

TEST_F(SubnetTest, directed_packets_find_each_node_by_its_path) {
  const struct {
    std::vector<std::uint8_t> path;
    const char* name;
  } rows[] = {
      {{}, "h1 weir0"}, {{1}, "leaf1"}, {{1, 1}, "h1 weir0"}, {{1, 3}, "spine1"}, {{1, 3, 1}, "leaf1"}};
  for (const auto& [path, name] : rows) {
    const auto answer = answer_smp(subnet, directed(node_description, path), 0);
    ASSERT_TRUE(answer) << name;
    EXPECT_EQ(name_in(*answer), name);
    EXPECT_EQ(status_of(*answer), 0x8000u);  // the direction
    EXPECT_EQ((*answer)[3], 0x81);
  }
}

TEST_F(SubnetTest, packets_end_at_pulled_cables_and_adapters) {
  for (const std::vector<std::uint8_t>& path : std::vector<std::vector<std::uint8_t>>{
           {1, 2}, {1, 4}, {2}, {0}, {1, 1, 1}, std::vector<std::uint8_t>(64, 1)})
    EXPECT_FALSE(answer_smp(subnet, directed(node_description, path), 0)) << path.size();
}

TEST_F(SubnetTest, port_info_has_lid_and_state) {
  const auto own = answer_smp(subnet, directed(port_info, {}, 1), 0).value();
  EXPECT_EQ(own[64 + 17], 1);        // LID of 10.77.0.1
  EXPECT_EQ(own[64 + 32] & 0xf, 4);  // active
  const auto pulled = answer_smp(subnet, directed(port_info, {1}, 2), 0).value();
  EXPECT_EQ(pulled[64 + 32] & 0xf, 1);  // down
  EXPECT_EQ(status_of(answer_smp(subnet, directed(port_info, {1}, 9), 0).value()) & 0x7fff, 7u << 2);
}

TEST_F(SubnetTest, node_info_tells_switches_from_adapters) {
  const auto leaf = answer_smp(subnet, directed(node_info, {1}), 0).value();
  EXPECT_EQ(leaf[64 + 2], 2);
  EXPECT_EQ(leaf[64 + 3], 3);   // ports
  EXPECT_EQ(leaf[64 + 36], 1);  // where it came in
  EXPECT_EQ(answer_smp(subnet, directed(node_info, {}), 0).value()[64 + 2], 1);
}

TEST_F(SubnetTest, nodes_are_found_by_lid) {
  const std::uint16_t leaf = subnet.nodes[0].lid;
  EXPECT_EQ(name_in(answer_smp(subnet, routed(node_description), 2).value()), "h2 weir0");
  EXPECT_EQ(name_in(answer_smp(subnet, routed(node_description), leaf).value()), "leaf1");
  EXPECT_EQ(status_of(answer_smp(subnet, routed(node_description), 2).value()), 0u);
  EXPECT_FALSE(answer_smp(subnet, routed(node_description), 99));
}

TEST_F(SubnetTest, forwarding_leads_to_hosts_by_ports) {
  const std::uint16_t spine = subnet.nodes[1].lid;
  const auto table = answer_smp(subnet, routed(forwarding), spine).value();
  EXPECT_EQ(table[64 + 1], 1);     // h1, by leaf1
  EXPECT_EQ(table[64 + 2], 0xff);  // h2 is cut off
  EXPECT_EQ(status_of(answer_smp(subnet, routed(forwarding), 1).value()), 3u << 2);
}

TEST_F(SubnetTest, what_is_unknown_or_set_is_refused) {
  EXPECT_EQ(status_of(answer_smp(subnet, routed(0x77), 1).value()), 3u << 2);
  Mad set = routed(port_info, 1);
  set[3] = 2;
  EXPECT_EQ(status_of(answer_smp(subnet, set, 1).value()), 2u << 2);
  EXPECT_EQ(status_of(answer_smp(subnet, routed(switch_info), 1).value()), 3u << 2);
}

TEST_F(SubnetTest, any_packet_and_topology_is_harmless) {
  constexpr unsigned seed = 7;
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    Mad mad = directed(static_cast<std::uint8_t>(0x10 + random() % 12), {1, 3});
    for (int change = 0; change < 8; ++change)
      mad[random() % mad.size()] = static_cast<std::uint8_t>(random());
    (void)answer_smp(subnet, mad, static_cast<std::uint16_t>(random() % 4));
  }
  for (const char* text :
       {"", "host", "switch", "cable a b up", "host h1 1", "host h1 10.0.0.1\ncable h1 h1 up"})
    (void)read_subnet(text, "h1", guid);
}

TEST(Subnet, host_without_a_network_is_alone) {
  const Subnet lonely = lonely_subnet("h9", 5, guid);
  EXPECT_EQ(name_in(answer_smp(lonely, directed(node_description, {}), 0).value()), "h9 weir0");
  EXPECT_FALSE(answer_smp(lonely, directed(node_description, {1}), 0));
}

}  // namespace
}  // namespace weir::verbs
