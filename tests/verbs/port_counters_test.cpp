// The port's counters, read through libibverbs: which processes add to them, and what remains when they end.
#include <array>
#include <cstdlib>
#include <string>

#include "peer_process.hpp"
#include "tests/scratch_directory.hpp"
#include "verbs/ibv/sysfs_counters.hpp"
#include "verbs/monitor/counters_seen.hpp"
#include "verbs/monitor/port_ledger.hpp"

// Of <infiniband/driver.h>, which goes with rdma-core's providers.
extern "C" int ibv_read_sysfs_file(const char* dir, const char* file, char* buffer, size_t size);

namespace weir::verbs_test {
namespace {

using verbs::CountersSeen;
using verbs::PortLedger;

std::uint64_t counter(const std::string& name) {
  std::array<char, 64> text{};
  const int length = ibv_read_sysfs_file("/sys/class/infiniband/weir0", ("ports/1/" + name).c_str(),
                                         text.data(), text.size());
  EXPECT_GT(length, 0) << name;
  return std::strtoull(text.data(), nullptr, 10);
}

class PortCounters : public testing::Test {
 protected:
  void SetUp() override {
    side.emplace(MemoryKind::ordinary, 4096);
    far = peer.order({.order = Order::open, .kind = MemoryKind::ordinary, .length = 4096}).address;
    ASSERT_EQ(peer.order({.order = Order::connect, .peer = side->address()}).error, 0);
    ASSERT_EQ(bring_up(side->qp.get(), far.qpn), 0);
  }
  void write(int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, 512, far), 0);
      ASSERT_TRUE(completed(wait_for(side->cq.get()), 1));
    }
  }
  PeerProcess peer;
  std::optional<Side> side;
  SideAddress far;
};

TEST_F(PortCounters, count_words_and_messages_of_all_processes) {
  const std::uint64_t out = counter("counters/port_xmit_data"), in = counter("counters/port_rcv_data"),
                      sent = counter("counters/port_xmit_packets"),
                      writes = counter("hw_counters/rx_write_requests");
  write(100);
  EXPECT_EQ(counter("counters/port_xmit_data") - out, 100u * 512 / 4);
  EXPECT_EQ(counter("counters/port_rcv_data") - in, 100u * 512 / 4);
  EXPECT_EQ(counter("counters/port_xmit_packets") - sent, 100u);
  EXPECT_EQ(counter("hw_counters/rx_write_requests") - writes, 100u);
}

TEST_F(PortCounters, go_on_when_a_process_exits) {
  const std::uint64_t writes = counter("hw_counters/rx_write_requests");
  write(10);
  EXPECT_EQ(peer.leave(), 0);
  EXPECT_EQ(counter("hw_counters/rx_write_requests") - writes, 10u);
}

// Its neighbour reports its counts once it learns that the process has ended.
TEST_F(PortCounters, go_on_when_a_process_is_killed) {
  const std::uint64_t writes = counter("hw_counters/rx_write_requests");
  write(10);
  peer.kill();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (counter("hw_counters/rx_write_requests") - writes < 10u &&
         std::chrono::steady_clock::now() < give_up) {
  }
  EXPECT_EQ(counter("hw_counters/rx_write_requests") - writes, 10u);
}

TEST_F(PortCounters, tell_a_wrong_rkey_from_other_errors) {
  const std::uint64_t access = counter("hw_counters/req_remote_access_errors"),
                      invalid = counter("hw_counters/req_remote_invalid_request"),
                      all = counter("hw_counters/send_err");
  SideAddress wrong = far;
  wrong.rkey += 1;
  ASSERT_EQ(side->post(IBV_WR_RDMA_WRITE, 1, 512, wrong), 0);
  ASSERT_TRUE(completed(wait_for(side->cq.get()), 1, IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(counter("hw_counters/req_remote_access_errors") - access, 1u);
  EXPECT_EQ(counter("hw_counters/req_remote_invalid_request") - invalid, 0u);
  EXPECT_EQ(counter("hw_counters/send_err") - all, 1u);
}

TEST(SysfsCounters, each_stands_once_in_one_of_the_two_directories) {
  for (const verbs::SysfsCounter& one : verbs::sysfs_counters()) {
    EXPECT_EQ(verbs::find_sysfs_counter(one.path), &one) << one.path;
    EXPECT_TRUE(one.path.starts_with("counters/") || one.path.starts_with("hw_counters/")) << one.path;
  }
}

TEST(SysfsCounters, unicast_and_multicast_together_are_all) {
  CountersSeen port{};
  for (std::uint64_t n = 1; std::uint64_t& word : verbs::words_of(port)) word = n++;
  const auto of = [&](const char* path) { return verbs::find_sysfs_counter(path)->of(port); };
  EXPECT_EQ(of("counters/unicast_xmit_packets") + of("counters/multicast_xmit_packets"),
            of("counters/port_xmit_packets"));
  EXPECT_EQ(of("counters/unicast_rcv_packets") + of("counters/multicast_rcv_packets"),
            of("counters/port_rcv_packets"));
}

class Ledger : public testing::Test {
 protected:
  static CountersSeen sends(std::uint64_t count) {
    CountersSeen seen{};
    seen.sends = count;
    return seen;
  }
  const test::ScratchDirectory scratch;
  const std::string& directory = scratch.path();
};

TEST_F(Ledger, is_made_by_those_who_look_only) {
  EXPECT_FALSE(PortLedger::open(directory, PortLedger::Missing::leave_it));
  EXPECT_TRUE(PortLedger::open(directory, PortLedger::Missing::make_it));
  EXPECT_TRUE(PortLedger::open(directory, PortLedger::Missing::leave_it));
}

TEST_F(Ledger, keeps_the_most_that_was_reported_of_each) {
  {
    auto ledger = PortLedger::open(directory, PortLedger::Missing::make_it);
    ASSERT_TRUE(ledger);
    ledger->report(7, sends(5));
    ledger->report(8, sends(100));
    ledger->report(7, sends(9));
    ledger->report(7, sends(5));  // one that comes late
  }
  EXPECT_EQ(PortLedger::open(directory, PortLedger::Missing::leave_it)->total().sends, 109u);
}

TEST_F(Ledger, keeps_the_sums_of_those_whose_place_it_needed) {
  auto ledger = PortLedger::open(directory, PortLedger::Missing::make_it);
  ASSERT_TRUE(ledger);
  for (std::uint64_t i = 1; i <= PortLedger::max_accounts + 10; ++i) ledger->report(i, sends(1));
  EXPECT_EQ(ledger->total().sends, PortLedger::max_accounts + 10);
}

TEST_F(Ledger, begins_anew_where_the_file_is_another_version_s) {
  for (const std::uintmax_t bytes : {std::uintmax_t{100}, std::uintmax_t{5000000}}) {
    {
      ASSERT_TRUE(PortLedger::open(directory, PortLedger::Missing::make_it));
    }
    std::filesystem::resize_file(directory + "/" + PortLedger::file_name, bytes);
    auto ledger = PortLedger::open(directory, PortLedger::Missing::make_it);
    ASSERT_TRUE(ledger);
    EXPECT_EQ(ledger->total().sends, 0u);
    ledger->report(1, sends(3));
    EXPECT_EQ(ledger->total().sends, 3u);
  }
}

}  // namespace
}  // namespace weir::verbs_test
