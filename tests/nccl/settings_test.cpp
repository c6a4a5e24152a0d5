// What the environment may contain, what it may not, and that the manual page covers it.
#include "nccl/settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "nccl/fault_dice.hpp"

namespace weir::nccl {
namespace {

using Environment = std::map<std::string, std::string>;

rdma::Result<Settings> read(const Environment& environment) {
  return read_settings([&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() ? found->second.c_str() : nullptr;
  });
}

TEST(NcclSettings, nothing_said_is_what_the_machine_has) {
  const auto settings = read({});
  ASSERT_TRUE(settings);
  EXPECT_TRUE(settings->devices.empty());
  EXPECT_FALSE(settings->faults.any());
  EXPECT_FALSE(settings->help);
}

TEST(NcclSettings, devices_have_the_shapes_of_the_lists) {
  const auto settings = read({{"WEIR_NCCL_DEVICES", "4"},
                              {"WEIR_NCCL_SPEEDS", "100000,200000"},
                              {"WEIR_NCCL_RAILS", "0,0,1,1"},
                              {"WEIR_NCCL_PCI_PATHS", ",/sys/devices/pci0000:00/0000:00:02.0"}});
  ASSERT_TRUE(settings) << settings.error().what;
  ASSERT_EQ(settings->devices.size(), 4u);
  EXPECT_EQ(settings->devices[0].speed_mbps, 100000);
  EXPECT_EQ(settings->devices[3].speed_mbps, 200000) << "the last one goes for the rest";
  EXPECT_EQ(settings->devices[2].rail, 1);
  EXPECT_EQ(settings->devices[2].plane, -1);
  EXPECT_EQ(settings->devices[0].pci_path, "");
  EXPECT_EQ(settings->devices[1].pci_path, "/sys/devices/pci0000:00/0000:00:02.0");
  EXPECT_EQ(settings->devices[2].pci_path, "") << "no two devices are at one place unless it is said";
}

TEST(NcclSettings, a_list_alone_says_how_many_devices_there_are) {
  const auto settings = read({{"WEIR_NCCL_RAILS", "0,1,2"}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->devices.size(), 3u);
}

TEST(NcclSettings, faults_are_read) {
  const auto settings =
      read({{"WEIR_NCCL_FAULTS", "qp-error=0.25,rnr-storm=0.5:300,delay=1,dead-nic=2@1000,seed=9"}});
  ASSERT_TRUE(settings) << settings.error().what;
  EXPECT_EQ(settings->faults.qp_error, 0.25);
  EXPECT_EQ(settings->faults.rnr_storm, 0.5);
  EXPECT_EQ(settings->faults.rnr_for.count(), 300);
  EXPECT_EQ(settings->faults.delay, 1);
  EXPECT_EQ(settings->faults.dead_device, 2);
  EXPECT_EQ(settings->faults.dead_after, 1000u);
  EXPECT_EQ(settings->faults.seed, 9u);
  EXPECT_TRUE(settings->faults.any());
}

TEST(NcclSettings, a_wrong_value_is_named_with_what_may_stand_there) {
  const Environment wrong[] = {
      {{"WEIR_NCCL_DEVICES", "0"}},
      {{"WEIR_NCCL_DEVICES", "65"}},
      {{"WEIR_NCCL_DEVICES", "four"}},
      {{"WEIR_NCCL_SPEEDS", "100000,"}},
      {{"WEIR_NCCL_RAILS", "40000"}},
      {{"WEIR_NCCL_ACK_TIMEOUT_MS", "0"}},
      {{"WEIR_NCCL_CONNECT_TIMEOUT_MS", "-1"}},
      {{"WEIR_NCCL_FAULTS", "qp-error"}},
      {{"WEIR_NCCL_FAULTS", "qp-error=2"}},
      {{"WEIR_NCCL_FAULTS", "qp-error=nan"}},
      {{"WEIR_NCCL_FAULTS", "delay=0.1:soon"}},
      {{"WEIR_NCCL_FAULTS", "dead-nic=0@"}},
      {{"WEIR_NCCL_FAULTS", "flood=1"}},
  };
  for (const Environment& environment : wrong) {
    const auto& [name, value] = *environment.begin();
    const auto settings = read(environment);
    ASSERT_FALSE(settings) << name << "=" << value;
    EXPECT_EQ(settings.error().code, rdma::Errc::bad_setting);
    EXPECT_NE(settings.error().what.find(name), std::string::npos) << settings.error().what;
    EXPECT_NE(settings.error().what.find(value), std::string::npos) << settings.error().what;
  }
}

std::string file(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(NcclSettings, manual_and_guide_tell_each_of_them) {
  const std::string manual = file(WEIR_NCCL_MANUAL), guide = file(WEIR_NCCL_GUIDE);
  for (const SettingLine& line : setting_lines()) {
    EXPECT_NE(manual.find(line.name), std::string::npos) << line.name;
    EXPECT_NE(guide.find(line.name), std::string::npos) << line.name;
    EXPECT_NE(help_text().find(line.name), std::string::npos) << line.name;
  }
}

TEST(NcclFaults, the_same_seed_makes_the_same_failures) {
  Faults faults;
  faults.qp_error = 0.1;
  faults.seed = 5;
  const auto strikes = [&](std::uint64_t ordinal) {
    FaultDice dice(faults, ordinal, 0, nullptr);
    std::vector<bool> each(1000);
    std::generate(each.begin(), each.end(), [&] { return dice.roll(faults.qp_error); });
    return each;
  };
  EXPECT_EQ(strikes(1), strikes(1));
  EXPECT_NE(strikes(1), strikes(2));
  const auto count = std::ranges::count(strikes(1), true);
  EXPECT_GT(count, 50);
  EXPECT_LT(count, 200);
}

TEST(NcclFaults, a_device_dies_after_so_many_operations_of_all_its_connections) {
  Faults faults;
  faults.dead_device = 1;
  faults.dead_after = 3;
  const auto shared = std::make_shared<DeviceSwitch>();
  FaultDice one(faults, 1, 1, shared), other(faults, 2, 1, shared), elsewhere(faults, 3, 0, shared);
  EXPECT_FALSE(one.device_dies());
  EXPECT_FALSE(other.device_dies());
  EXPECT_FALSE(one.device_dies());
  EXPECT_TRUE(other.device_dies());
  EXPECT_TRUE(one.device_dies());
  EXPECT_FALSE(elsewhere.device_dies());
}

}  // namespace
}  // namespace weir::nccl
