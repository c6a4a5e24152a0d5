// What `weir run` passes to the devices in the environment.
#include "verbs/ibv/device_options.hpp"

#include <gtest/gtest.h>

namespace weir::verbs {
namespace {

using Names = std::vector<std::string>;

TEST(DeviceOptions, devices_are_named_by_a_list) {
  const std::string too_long(IBV_SYSFS_NAME_MAX, 'x');
  const struct {
    const char* text;
    Names names;
  } rows[] = {
      {nullptr, {"weir0"}},
      {"", {"weir0"}},
      {",,", {"weir0"}},
      {"mlx5_0", {"mlx5_0"}},
      {"mlx5_0,mlx5_1", {"mlx5_0", "mlx5_1"}},
      {"a,,b,", {"a", "b"}},
      {"a,a", {"a"}},
      {"../etc,ok", {"ok"}},
      {too_long.c_str(), {"weir0"}},
  };
  for (const auto& row : rows)
    EXPECT_EQ(parse_device_options(row.text, nullptr).devices, row.names) << row.text;
}

TEST(DeviceOptions, the_list_of_devices_is_bounded) {
  std::string text;
  for (std::size_t i = 0; i < 3 * max_devices; ++i) text.append("d").append(std::to_string(i)).append(",");
  EXPECT_EQ(parse_device_options(text.c_str(), nullptr).devices.size(), max_devices);
}

TEST(DeviceOptions, the_mtu_is_one_that_roce_has) {
  const std::pair<const char*, std::optional<ibv_mtu>> rows[] = {
      {nullptr, {}},          {"256", IBV_MTU_256},   {"512", IBV_MTU_512}, {"1024", IBV_MTU_1024},
      {"2048", IBV_MTU_2048}, {"4096", IBV_MTU_4096}, {"1500", {}},         {"", {}}};
  for (const auto& [text, mtu] : rows)
    EXPECT_EQ(parse_device_options(nullptr, nullptr, text).active_mtu, mtu) << text;
}

TEST(DeviceOptions, gids_are_addresses_and_the_rest_is_left_out) {
  const DeviceOptions read = parse_device_options(nullptr, "10.1.2.3,nonsense,fd00::7,,1.2.3");
  ASSERT_EQ(read.gids.size(), 2u);
  EXPECT_EQ(read.gids[0].raw[11], 0xff);
  EXPECT_EQ(read.gids[0].raw[12], 10);
  EXPECT_EQ(read.gids[0].raw[15], 3);
  EXPECT_EQ(read.gids[1].raw[0], 0xfd);
  EXPECT_EQ(read.gids[1].raw[15], 7);
}

}  // namespace
}  // namespace weir::verbs
