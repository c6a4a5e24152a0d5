// What processes leave in the runtime directory, in whatever way they end.
#include <cstdlib>
#include <filesystem>

#include "peer_process.hpp"

namespace weir::verbs_test {
namespace {

// The runtime directory of other processes, without this one.
class Remains : public testing::Test {
 protected:
  Remains() {
    use_own_runtime_directory();
    ours = ::getenv("WEIR_RUNTIME_DIR");
    directory = ours + "/remains";
    std::filesystem::create_directory(directory);
    ::setenv("WEIR_RUNTIME_DIR", directory.c_str(), 1);
  }
  ~Remains() override { ::setenv("WEIR_RUNTIME_DIR", ours.c_str(), 1); }
  bool empty() const { return !std::filesystem::exists(directory) || std::filesystem::is_empty(directory); }
  static SideAddress open(PeerProcess& process) {
    return process.order({.order = Order::open, .length = 4096}).address;
  }
  std::string ours, directory;
};

TEST_F(Remains, of_a_process_that_left_there_are_none) {
  PeerProcess one;
  open(one);
  EXPECT_FALSE(empty());
  EXPECT_EQ(one.leave(), 0);
  EXPECT_TRUE(empty());
}

TEST_F(Remains, of_a_killed_process_are_cleaned_up_by_its_neighbour) {
  PeerProcess one, two;
  const SideAddress first = open(one), second = open(two);
  ASSERT_EQ(one.order({.order = Order::connect, .peer = second}).error, 0);
  ASSERT_EQ(two.order({.order = Order::connect, .peer = first}).error, 0);
  one.kill();
  EXPECT_EQ(two.leave(), 0);
  EXPECT_TRUE(empty());
}

TEST_F(Remains, of_killed_processes_are_cleaned_up_by_the_next) {
  {
    PeerProcess one, two;
    open(one);
    open(two);
    one.kill();
    two.kill();
  }
  PeerProcess next;
  open(next);
  EXPECT_EQ(next.leave(), 0);
  EXPECT_TRUE(empty());
}

}  // namespace
}  // namespace weir::verbs_test
