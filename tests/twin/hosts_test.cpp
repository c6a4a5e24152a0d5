// Hosts as namespaces: what a program in one sees, and that nothing of them survives their keeper.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tests/scratch_directory.hpp"
#include "twin/hosts/enter_host.hpp"
#include "twin/hosts/folder.hpp"
#include "twin/hosts/keeper.hpp"
#include "twin/hosts/running_network.hpp"

namespace weir::hosts {
namespace {

class HostsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = start_network(plan, folder, Lifetime::with_this_process);
    if (!started && started.error().cause == Cause::namespaces_refused) GTEST_SKIP() << started.error().what;
    ASSERT_TRUE(started) << started.error().what;
    keeper.emplace(std::move(*started));
  }

  void TearDown() override {
    if (!keeper) return;
    const pid_t pid = keeper->pid();
    keeper.reset();
    ::waitpid(pid, nullptr, 0);
    EXPECT_FALSE(std::filesystem::exists(folder));
  }

  pid_t start(const std::string& host, const std::function<int()>& body) {
    const auto found = find_host(folder, host);
    EXPECT_TRUE(found) << found.error().what;
    const auto child = fork_into(*found);
    EXPECT_TRUE(child) << child.error().what;
    if (*child == 0) ::_exit(body());
    return *child;
  }

  static int ended(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
  }

  // The exit status of a shell that runs `command` in the host.
  int run(const std::string& host, const std::string& command) {
    return ended(start(host, [&] {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      return 127;
    }));
  }

  test::ScratchDirectory scratch;
  std::string folder = scratch.file("net");
  NetworkPlan plan{.hosts = hosts_by_order({"h1", "h2", "h3"}), .title = "three"};
  std::optional<Keeper> keeper;
};

TEST_F(HostsTest, have_names_and_resolve_each_other) {
  EXPECT_EQ(run("h2", "test $(hostname) = h2"), 0);
  EXPECT_EQ(run("h1", "getent hosts h3 | grep -q '^10.77.0.3 '"), 0);
}

TEST_F(HostsTest, keep_the_user_and_the_working_directory) {
  const std::string here = std::filesystem::current_path();
  EXPECT_EQ(
      run("h1", "test $(id -u) = " + std::to_string(::geteuid()) + " && test \"$PWD\" = '" + here + "'"), 0);
}

TEST_F(HostsTest, share_no_processes_with_the_machine) {
  EXPECT_EQ(run("h1", "test -e /proc/self && ! test -e /proc/" + std::to_string(::getpid() + 100000)), 0);
  EXPECT_EQ(run("h1", "test $(cat /proc/1/comm) = weir-fabric"), 0);
}

TEST_F(HostsTest, share_no_memory_files) {
  EXPECT_EQ(run("h1", "echo > /dev/shm/mark"), 0);
  EXPECT_EQ(run("h1", "test -e /dev/shm/mark"), 0);
  EXPECT_NE(run("h2", "test -e /dev/shm/mark"), 0);
}

TEST_F(HostsTest, reach_each_other_and_not_the_machine) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t server = start("h2", [&] {
    const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(7000), .sin_addr = {INADDR_ANY}, .sin_zero = {}};
    if (::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 1;
    if (::listen(listening, 1) != 0 || ::write(ready[1], "r", 1) != 1) return 2;
    return ::accept(listening, nullptr, nullptr) < 0 ? 3 : 0;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto connect_to = [](const char* to) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(7000), .sin_addr = {}, .sin_zero = {}};
    ::inet_pton(AF_INET, to, &address.sin_addr);
    return ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  };
  EXPECT_EQ(ended(start("h1", [&] { return connect_to("192.0.2.1"); })), ENETUNREACH);
  EXPECT_EQ(ended(start("h1", [&] { return connect_to("10.77.0.2"); })), 0);
  EXPECT_EQ(ended(server), 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(HostsTest, lose_their_carrier_when_the_cable_is_pulled) {
  constexpr const char* carrier = "test $(cat /sys/class/net/eth0/carrier) = ";
  EXPECT_EQ(run("h2", carrier + std::string("1")), 0);
  ASSERT_TRUE(plug(folder, "h2", false));
  EXPECT_EQ(run("h2", carrier + std::string("0")), 0);
  EXPECT_FALSE(list_hosts(folder)->hosts[1].plugged_in);
  ASSERT_TRUE(plug(folder, "h2", true));
  EXPECT_EQ(run("h2", carrier + std::string("1")), 0);
  EXPECT_TRUE(list_hosts(folder)->hosts[1].plugged_in);
}

TEST_F(HostsTest, are_entered_from_each_other) {
  EXPECT_EQ(ended(start("h1",
                        [&] {
                          const auto found = find_host(folder, "h3");
                          if (!found) return 1;
                          const auto child = fork_into(*found);
                          if (!child) return 2;
                          if (*child == 0) {
                            char name[8] = {};
                            ::gethostname(name, sizeof name);
                            ::_exit(std::string_view(name) == "h3" ? 0 : 3);
                          }
                          return ended(*child);
                        })),
            0);
}

TEST_F(HostsTest, that_are_unknown_are_refused_with_those_there_are) {
  const auto found = find_host(folder, "h4");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().cause, Cause::no_host);
  EXPECT_NE(found.error().what.find("h1 to h3"), std::string::npos) << found.error().what;
}

TEST_F(HostsTest, exist_once_a_folder) {
  const auto again = start_network(plan, folder, Lifetime::with_this_process);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().cause, Cause::exists);
}

// A program's child that the program left behind in the network.
TEST_F(HostsTest, end_with_all_their_programs) {
  int alive[2];
  ASSERT_EQ(::pipe(alive), 0);
  const pid_t program = start("h1", [&] {
    ::close(alive[0]);
    if (::fork() == 0) ::pause();
    return 0;
  });
  ::close(alive[1]);
  EXPECT_EQ(ended(program), 0);
  ASSERT_EQ(::kill(keeper->pid(), SIGKILL), 0);
  char byte = 0;
  EXPECT_EQ(::read(alive[0], &byte, 1), 0);  // the pipe's end: the sleeper is dead
  ::close(alive[0]);
}

TEST_F(HostsTest, end_when_they_are_told_to) {
  const pid_t program = start("h1", [] { return ::pause(); });
  ASSERT_TRUE(end_network(folder));
  EXPECT_EQ(ended(program), 256 + SIGTERM);
  EXPECT_EQ(list_hosts(folder).error().cause, Cause::no_network);
}

}  // namespace
}  // namespace weir::hosts
