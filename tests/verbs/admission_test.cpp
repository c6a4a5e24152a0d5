// Which packets of strangers are looked at, and what finding that out costs.
#include "verbs/nic/admission.hpp"

#include <gtest/gtest.h>

#include "verbs/nic/drop_report.hpp"
#include "wire/mad.hpp"

namespace weir::verbs {
namespace {

using rnic::Dropped;
using std::chrono::milliseconds;
constexpr hash::SipKey key{1, 2};
constexpr rnic::Slot neighbour = 3, nobody = 4;

// Knows who is there, and counts how often it is asked: each time costs system calls.
class Slots final : public link::SameHostLink {
 public:
  link::Slot slot() const override { return 1; }
  const std::string& directory() const override { return directory_; }
  int number_descriptor() const override { return -1; }
  std::vector<link::Slot> occupied() const override {
    ++looks;
    return taken;
  }
  bool is_free(link::Slot) const override { return false; }
  link::Result<link::NeighbourPtr> connect(link::Slot, milliseconds) override { return nullptr; }
  void connect_async(link::Slot, milliseconds,
                     std::function<void(link::Result<link::NeighbourPtr>)>) override {}
  link::NeighbourPtr connected(link::Slot) const override { return nullptr; }
  void on_restored(link::RestoredHandler) override {}
  void on_message(std::uint16_t, link::MessageHandler) override {}
  void on_gone(link::GoneHandler) override {}
  link::Result<void> watch(int, link::FdHandler) override { return {}; }
  void unwatch(int) override {}
  void heed(int, bool) override {}
  TimerId at(link::Clock::time_point, std::function<void()>) override { return 0; }
  bool cancel(TimerId) override { return true; }
  void post(std::function<void()>) override {}
  bool on_progress_thread() const override { return true; }
  void withdraw() override {}

  mutable int looks = 0;
  std::vector<link::Slot> taken = {1, neighbour};

 private:
  const std::string directory_;
};

rnic::Gid address(std::uint8_t network, std::uint8_t host = 1) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, network, host};
}

class AdmissionTest : public testing::Test {
 protected:
  static rnic::PacketDatagram from(const rnic::Gid& source) {
    rnic::PacketDatagram datagram;
    datagram.source = source;
    return datagram;
  }
  std::optional<Dropped> passing_on(rnic::Slot slot, const rnic::Gid& source) {
    return admission.refuse_passing_on(slot, from(source), now);
  }
  std::optional<Dropped> management(const rnic::Gid& source) {
    return admission.refuse_management(from(source), request, now);
  }

  Slots link;
  Admission admission{link, 14, key};
  link::Clock::time_point now{std::chrono::seconds(1'000)};
  std::array<std::byte, wire::mad_bytes> mad{};
  wire::Packet request = [this] {
    wire::Packet packet;
    packet.bth.opcode = wire::opcode(wire::Service::ud, wire::Operation::send_only);
    packet.deth.qkey = wire::cm_qkey;
    packet.payload = mad;
    return packet;
  }();
};

TEST_F(AdmissionTest, knows_empty_slots_without_asking_for_each_packet) {
  for (int ms = 0; ms < 1'000; ++ms, now += milliseconds(1))
    for (int i = 0; i < 60; ++i) EXPECT_EQ(passing_on(nobody, address(1)), Dropped::no_process);
  EXPECT_LE(link.looks, 11);
}

TEST_F(AdmissionTest, knows_a_process_that_was_heard_of_at_once) {
  EXPECT_EQ(passing_on(nobody, address(1)), Dropped::no_process);
  link.taken.push_back(nobody);
  EXPECT_EQ(passing_on(nobody, address(1)), Dropped::no_process);
  admission.look_again();
  EXPECT_EQ(passing_on(nobody, address(1)), std::nullopt);
}

TEST_F(AdmissionTest, passes_on_what_a_known_process_is_sent) {
  EXPECT_EQ(passing_on(neighbour, address(1)), std::nullopt);
  EXPECT_EQ(passing_on(link::max_slots, address(1)), Dropped::no_process);
}

TEST_F(AdmissionTest, bounds_what_strangers_get_passed_on) {
  std::uint64_t passed = 0;
  for (int i = 0; i < 60'000; ++i) passed += passing_on(neighbour, address(1)) ? 0 : 1;
  EXPECT_EQ(passed, Admission::passed_of_network.at_once);
}

TEST_F(AdmissionTest, dials_a_process_once_a_second) {
  int dials = 0;
  for (int ms = 0; ms < 3'000; ++ms, now += milliseconds(1))
    dials += admission.may_dial(neighbour, now) ? 1 : 0;
  EXPECT_EQ(dials, 3);
}

TEST_F(AdmissionTest, bounds_the_requests_of_strangers_and_not_of_peers) {
  admission.expect(address(255));
  std::uint64_t taken = 0;
  for (int i = 0; i < 60'000; ++i) taken += management(address(static_cast<std::uint8_t>(i % 250))) ? 0 : 1;
  EXPECT_EQ(taken, Admission::management_of_all.at_once);
  EXPECT_EQ(management(address(251)), Dropped::over_budget);
  EXPECT_EQ(management(address(255)), std::nullopt);
}

TEST_F(AdmissionTest, counts_strangers_in_windows_only_while_they_come) {
  std::vector<std::function<void()>> later;
  admission.filter(-1, [&](milliseconds, std::function<void()> run) { later.push_back(std::move(run)); });
  admission.expect(address(9));
  EXPECT_EQ(management(address(9)), std::nullopt);
  EXPECT_TRUE(later.empty()) << "peers are not counted";
  for (int i = 0; i < 10'000; ++i) (void)management(address(static_cast<std::uint8_t>(i % 250)));
  ASSERT_EQ(later.size(), 1u);
  for (std::size_t window = 0; window < later.size(); ++window) std::exchange(later[window], {})();
  EXPECT_LE(later.size(), 4u) << "and ends";
}

TEST_F(AdmissionTest, refuses_what_is_no_management_datagram) {
  request.deth.qkey = 1;
  EXPECT_EQ(management(address(1)), Dropped::wrong_qkey);
  request.deth.qkey = wire::cm_qkey;
  request.payload = request.payload.first(100);
  EXPECT_EQ(management(address(1)), Dropped::malformed);
}

TEST(DropReport, says_once_a_minute_what_was_dropped_and_why) {
  DropReport report;
  DropReport::Counts counts{};
  link::Clock::time_point now{std::chrono::seconds(1'000)};
  counts[static_cast<std::size_t>(Dropped::wrong_source)] = DropReport::worth_saying - 1;
  EXPECT_FALSE(report.look(counts, now)) << "a few are normal";
  counts[static_cast<std::size_t>(Dropped::wrong_icrc)] = 5;
  const auto line = report.look(counts, now);
  ASSERT_TRUE(line);
  EXPECT_NE(line->find("1004 packets"), std::string::npos) << *line;
  EXPECT_NE(line->find("999 not from the queue pair's peer"), std::string::npos) << *line;
  EXPECT_EQ(line->find("Q_Key"), std::string::npos) << *line;
  counts[static_cast<std::size_t>(Dropped::no_process)] = 1'000'000;
  EXPECT_FALSE(report.look(counts, now + std::chrono::seconds(59)));
  EXPECT_TRUE(report.look(counts, now + std::chrono::seconds(60)));
}

}  // namespace
}  // namespace weir::verbs
