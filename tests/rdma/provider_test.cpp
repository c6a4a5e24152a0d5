// Which provider is chosen, and the message if it is not available. The interop tests
// load a real provider.
#include "rdma/provider.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace weir::rdma {
namespace {

namespace fs = std::filesystem;

struct ProviderTest : testing::Test {
  fs::path root = fs::path(testing::TempDir()) /
                  (std::string("weir-") + testing::UnitTest::GetInstance()->current_test_info()->name());
  void SetUp() override { fs::remove_all(root); }
  void TearDown() override { fs::remove_all(root); }

  void add_port(const std::string& device, const std::string& port, const std::string& state) {
    const fs::path dir = root / "class" / "infiniband" / device / "ports" / port;
    fs::create_directories(dir);
    std::ofstream(dir / "state") << state << "\n";
  }
};

TEST_F(ProviderTest, finds_the_first_active_port) {
  EXPECT_EQ(active_hardware_port(root), "");
  add_port("mlx5_0", "1", "1: DOWN");
  add_port("mlx5_0", "2", "2: INIT");
  EXPECT_EQ(active_hardware_port(root), "");
  add_port("mlx5_2", "1", "4: ACTIVE");
  add_port("mlx5_1", "2", "4: ACTIVE");
  EXPECT_EQ(active_hardware_port(root), "mlx5_1/2");
}

TEST_F(ProviderTest, parses_choices) {
  EXPECT_EQ(parse_provider_choice(""), ProviderChoice::automatic);
  EXPECT_EQ(parse_provider_choice("auto"), ProviderChoice::automatic);
  EXPECT_EQ(parse_provider_choice("weir"), ProviderChoice::weir);
  EXPECT_EQ(parse_provider_choice("system"), ProviderChoice::system);
  const auto refused = parse_provider_choice("mellanox");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("auto, weir or system"), std::string::npos);
}

TEST_F(ProviderTest, names_every_place_it_looked_in) {
  for (const char* installed : {"/usr/local/lib/weir", "/usr/lib/weir"})
    if (fs::exists(installed)) GTEST_SKIP() << "Weir is installed in " << installed << ", where it is found";
  const std::string path = (root / "a").string() + ":" + (root / "b").string();
  const auto missing = load_provider({.choice = ProviderChoice::weir,
                                      .library_dir = {},
                                      .library_path = path,
                                      .sysfs_root = root,
                                      .executable = root / "prefix" / "bin" / "program"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::library_not_found);
  for (const char* part : {"libibverbs.so.1", "librdmacm.so.1", "prefix/lib/verbs", "prefix/lib/weir", "/a",
                           "/b", "/usr/lib/weir", "/usr/local/lib/weir", "system"})
    EXPECT_NE(missing.error().what.find(part), std::string::npos)
        << part << " is not in: " << missing.error().what;
}

TEST_F(ProviderTest, refuses_a_file_that_is_no_library) {
  fs::create_directories(root);
  std::ofstream(root / "libibverbs.so.1") << "not a library";
  std::ofstream(root / "librdmacm.so.1") << "not a library";
  const auto broken = load_provider({.choice = ProviderChoice::weir,
                                     .library_dir = root,
                                     .library_path = {},
                                     .sysfs_root = root,
                                     .executable = {}});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Errc::library_unusable);
}

}  // namespace
}  // namespace weir::rdma
