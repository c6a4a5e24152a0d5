// A list of servers in a watched file.
#include "rpc/pool/resolver.hpp"

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <filesystem>
#include <fstream>

#include "tests/scratch_directory.hpp"

namespace weir::rpc {
namespace {

class WatchedFileTest : public testing::Test {
 protected:
  asio::io_context io{1};
  test::ScratchDirectory folder;
  const std::unique_ptr<Resolver> resolver = watched_file(folder.file("servers"));
  int changes = 0;

  void write(const std::string& name, const std::string& text) { std::ofstream(folder.file(name)) << text; }
  std::vector<std::string> resolved() {
    std::vector<std::string> addresses;
    asio::co_spawn(io, resolver->resolve(), [&](const std::exception_ptr&, auto result) {
      if (result) addresses = *result;
    });
    io.restart();
    io.poll();
    return addresses;
  }
  void wait_for_change() {
    asio::co_spawn(io, resolver->changed(), [this](const std::exception_ptr&) { ++changes; });
  }
  void run() {
    io.restart();
    io.poll();
  }
};

TEST_F(WatchedFileTest, says_that_it_changed_when_it_was_written_and_not_when_others_were) {
  write("servers", "tcp://127.0.0.1:1\n");
  EXPECT_EQ(resolved(), std::vector<std::string>{"tcp://127.0.0.1:1"});
  wait_for_change();
  write("others", "x");
  run();
  EXPECT_EQ(changes, 0);
  write("servers", "tcp://127.0.0.1:2\n");
  run();
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(resolved(), std::vector<std::string>{"tcp://127.0.0.1:2"});
}

// The kernel queues a limited number of events, and then only reports that there were more.
TEST_F(WatchedFileTest, is_read_again_when_the_kernel_has_lost_events) {
  int most = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
  if (most <= 0 || most > 100'000) GTEST_SKIP() << "the kernel keeps " << most << " events";
  write("servers", "tcp://127.0.0.1:1\n");
  EXPECT_EQ(resolved().size(), 1u);
  wait_for_change();
  for (int i = 0; i <= most; ++i) write(i % 2 == 0 ? "some" : "others", "");  // equal events would be merged
  write("servers", "tcp://127.0.0.1:2\n");
  for (int i = 0; i < 10'000 && changes == 0; ++i) run();
  EXPECT_EQ(changes, 1);
}

TEST_F(WatchedFileTest, is_read_again_when_its_folder_was_replaced) {
  const std::string sub = folder.file("etc");
  std::filesystem::create_directory(sub);
  std::ofstream(sub + "/servers") << "tcp://127.0.0.1:1\n";
  const auto nested = watched_file(sub + "/servers");
  bool changed = false;
  asio::co_spawn(io, nested->resolve(), [](const std::exception_ptr&, auto) {});
  run();
  asio::co_spawn(io, nested->changed(), [&](const std::exception_ptr&) { changed = true; });
  run();
  EXPECT_FALSE(changed);
  std::filesystem::remove_all(sub);
  run();
  EXPECT_TRUE(changed);
}

}  // namespace
}  // namespace weir::rpc
