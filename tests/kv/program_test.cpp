// weir-server as a program: its exit codes, its files, and running in the background.
#include "tests/kv/program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Ending {
  const char* name;
  std::vector<std::string> arguments;
  int code;
  const char* says;
  const char* variable = "";

  friend void PrintTo(const Ending& ending, std::ostream* out) { *out << ending.name; }
};

class ProgramEnding : public ::testing::TestWithParam<Ending> {};

TEST_P(ProgramEnding, has_its_exit_code_and_says_why) {
  Program program(GetParam().arguments, GetParam().variable);
  EXPECT_NE(program.output().find(GetParam().says), std::string::npos) << program.output();
  EXPECT_EQ(program.exit_code(), GetParam().code);
}

const Ending endings[] = {
    {"help", {"--help"}, 0, "--tls-handshake-timeout"},
    {"version", {"--version"}, 0, "weir-server "},
    {"unknown_option", {"--nothing", "1"}, 2, "unknown option --nothing"},
    {"bad_value", {"--port", "abc"}, 2, "couldn't be parsed into an integer"},
    {"no_such_file", {"/nowhere/x.conf"}, 2, "cannot read the configuration file"},
    {"folder_for_a_file", {"/"}, 2, "cannot read the configuration file /: Is a directory"},
    {"bad_environment", {"--port", "0"}, 2, "WEIR_RDMA_PROVIDER", "WEIR_RDMA_PROVIDER=nonsense"},
    {"nothing_to_listen_on", {"--port", "0"}, 1, "nothing to listen on"},
    {"no_such_address", {"--port", "-1", "--bind", "192.0.2.1"}, 1, "This host has no such address"},
    {"log_file", {"--port", "-1", "--logfile", "/nowhere/log"}, 1, "Check --logfile"},
    {"folder", {"--port", "-1", "--dir", "/nowhere"}, 1, "Check --dir"},
    {"in_the_background", {"--port", "0", "--daemonize", "yes"}, 1, "nothing to listen on"},
    {"in_the_background_with_a_log",
     {"--port", "0", "--daemonize", "yes", "--logfile", "/dev/null"},
     1,
     "nothing to listen on"},
};
INSTANTIATE_TEST_SUITE_P(Cases, ProgramEnding, ::testing::ValuesIn(endings),
                         [](const auto& instance) { return std::string(instance.param.name); });

class StoppedProgram : public ::testing::TestWithParam<int> {};

TEST_P(StoppedProgram, ends_with_0_and_takes_its_files_along) {
  const ScratchFolder folder;
  Program program({"--port", "0", "--unixsocket", folder.file("s"), "--pidfile", folder.file("pid")});
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  EXPECT_EQ(contents(folder.file("pid")), std::to_string(program.pid()) + "\n");
  if (GetParam() == 0) {
    WireClient client = WireClient::unix_socket(folder.file("s"));
    client.send("SHUTDOWN\r\n");
    EXPECT_EQ(client.until_closed(), "");
  } else {
    program.signal(GetParam());
  }
  EXPECT_NE(program.output().find("stopped"), std::string::npos);
  EXPECT_EQ(program.exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder.file("pid")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("s")));
}
INSTANTIATE_TEST_SUITE_P(Ways, StoppedProgram, ::testing::Values(0, SIGTERM, SIGINT),
                         [](const auto& instance) {
                           return instance.param == 0         ? "SHUTDOWN"
                                  : instance.param == SIGTERM ? "SIGTERM"
                                                              : "SIGINT";
                         });

TEST(Program, writes_its_log_to_the_file_and_nothing_else) {
  const ScratchFolder folder;
  Program program({"--port", "0", "--dir", folder.file(""), "--unixsocket", "s", "--logfile", "log"});
  while (contents(folder.file("log")).find("Ready to accept connections") == std::string::npos)
    std::this_thread::yield();
  EXPECT_EQ(WireClient::unix_socket(folder.file("s")).call({"PING"}), "+PONG\r\n");
  program.signal(SIGTERM);
  EXPECT_EQ(program.output(), "");
  EXPECT_EQ(program.exit_code(), 0);
  EXPECT_NE(contents(folder.file("log")).find("# stopped"), std::string::npos);
}

// A log is renamed to keep it, without notifying the server.
TEST(Program, writes_a_new_log_file_when_the_old_one_was_moved) {
  const ScratchFolder folder;
  Program program({"--port", "0", "--dir", folder.file(""), "--unixsocket", "s", "--logfile", "log"});
  while (contents(folder.file("log")).find("Ready to accept connections") == std::string::npos)
    std::this_thread::yield();
  std::filesystem::rename(folder.file("log"), folder.file("log.1"));
  program.signal(SIGTERM);
  EXPECT_EQ(program.exit_code(), 0);
  EXPECT_EQ(contents(folder.file("log.1")).find("# stopped"), std::string::npos);
  EXPECT_NE(contents(folder.file("log")).find("# stopped"), std::string::npos);
}

TEST(Program, lives_on_when_its_terminal_hangs_up) {
  const ScratchFolder folder;
  Program program({"--port", "0", "--unixsocket", folder.file("s")});
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  program.signal(SIGHUP);
  WireClient client = WireClient::unix_socket(folder.file("s"));
  client.send("SHUTDOWN\r\n");
  EXPECT_EQ(client.until_closed(), "");
  EXPECT_EQ(program.exit_code(), 0) << "it was not killed";
}

TEST(Program, says_that_nothing_is_saved_by_itself_and_claims_no_save) {
  const ScratchFolder folder;
  Program program({"--port", "0", "--unixsocket", folder.file("s")});
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  WireClient client = WireClient::unix_socket(folder.file("s"));
  const std::string info = client.call({"INFO", "persistence"});
  EXPECT_NE(info.find("rdb_last_save_time:0\r\n"), std::string::npos) << info;
  EXPECT_NE(info.find("rdb_saves:0\r\n"), std::string::npos) << info;
  client.send("SHUTDOWN NOSAVE\r\n");
  EXPECT_EQ(client.until_closed(), "");
  EXPECT_NE(program.output().find("nothing is saved by itself"), std::string::npos);
  EXPECT_EQ(program.exit_code(), 0);
}

TEST(Program, names_the_settings_without_effect_in_one_line) {
  const ScratchFolder folder;
  Program program({"--port", "0", "--unixsocket", folder.file("s"), "--hz", "10", "--oom-score-adj", "no"});
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  program.signal(SIGTERM);
  EXPECT_NE(program.output().find("without effect here: hz, oom-score-adj\n"), std::string::npos)
      << program.output();
}

TEST(Program, serves_though_its_pid_file_cannot_be_written) {
  const ScratchFolder folder;
  Program program({"--port", "0", "--unixsocket", folder.file("s"), "--pidfile", "/nowhere/pid"});
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  EXPECT_TRUE(program.prints("Check --pidfile"));
  EXPECT_EQ(WireClient::unix_socket(folder.file("s")).call({"PING"}), "+PONG\r\n");
}

TEST(Program, leaves_what_it_could_not_write_its_pid_to) {
  const ScratchFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.file("pid"));
  Program program({"--port", "0", "--unixsocket", folder.file("s"), "--pidfile", folder.file("pid")});
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  program.signal(SIGTERM);
  EXPECT_NE(program.output().find("stopped"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("pid")));
}

TEST(Program, serves_from_the_background_when_its_starter_has_ended) {
  const ScratchFolder folder;
  Program starter({"--port", "0", "--unixsocket", folder.file("s"), "--pidfile", folder.file("pid"),
                   "--daemonize", "yes"});
  EXPECT_NE(starter.output().find("Ready to accept connections"), std::string::npos)
      << "it leaves its starter's output";
  const pid_t started = starter.pid();
  EXPECT_EQ(starter.exit_code(), 0);
  WireClient client = WireClient::unix_socket(folder.file("s"));
  EXPECT_EQ(client.call({"PING"}), "+PONG\r\n");
  const pid_t server = std::stoi(contents(folder.file("pid")));
  EXPECT_NE(server, started);
  EXPECT_EQ(::getsid(server), server) << "a session of its own";
  const int end = static_cast<int>(::syscall(SYS_pidfd_open, server, 0));
  ASSERT_GE(end, 0);
  ::kill(server, SIGTERM);
  pollfd wait{end, POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 20000), 1);
  ::close(end);
  EXPECT_FALSE(std::filesystem::exists(folder.file("pid")));
}

long resident_pages(pid_t pid) {
  std::istringstream fields(contents("/proc/" + std::to_string(pid) + "/statm"));
  long total = 0, resident = 0;
  fields >> total >> resident;
  return resident;
}

TEST(Program, asks_for_descriptors_when_maxclients_is_raised) {
  const ScratchFolder folder;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{256, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  Program program({"--port", "0", "--unixsocket", folder.file("s"), "--maxclients", "100"});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  WireClient client = WireClient::unix_socket(folder.file("s"));
  EXPECT_EQ(client.call({"CONFIG", "SET", "maxclients", "400"}), "+OK\r\n");
  rlimit limit{};
  ASSERT_EQ(prlimit(program.pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  EXPECT_GE(limit.rlim_cur, 400u);
  const std::string refused = client.call({"CONFIG", "SET", "maxclients", "4294967295"});
  EXPECT_NE(
      refused.find("The operating system is not able to handle the specified number of clients, try with"),
      std::string::npos)
      << refused;
  EXPECT_EQ(client.call({"CONFIG", "GET", "maxclients"}), "*2\r\n$10\r\nmaxclients\r\n$3\r\n400\r\n");
}

TEST(Program, keeps_freed_memory_for_new_values_until_it_is_asked_back) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
  GTEST_SKIP() << "the sanitizers have a heap of their own";
#endif
  const ScratchFolder folder;
  Program program({"--port", "0", "--unixsocket", folder.file("s")});
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  WireClient client = WireClient::unix_socket(folder.file("s"));
  const std::string value(1 << 20, 'x');
  constexpr int count = 40;
  const long pages = count * static_cast<long>(value.size()) / sysconf(_SC_PAGESIZE);
  for (int i = 0; i < count; ++i) ASSERT_EQ(client.call({"SET", std::to_string(i), value}), "+OK\r\n");
  EXPECT_EQ(client.call({"FLUSHALL", "SYNC"}), "+OK\r\n");
  // Most of it: jemalloc returns blocks that merge to 8 MiB at once (opt.oversize_threshold), and how many do
  // depends on where the kernel puts new memory.
  EXPECT_GT(resident_pages(program.pid()), pages * 3 / 4);
  EXPECT_EQ(client.call({"MEMORY", "PURGE"}), "+OK\r\n");
  EXPECT_LT(resident_pages(program.pid()), pages / 2);
}

// With the heap that the program is linked with, whose own forms of operator new and delete count nothing.
TEST(Program, counts_no_memory_that_it_has_freed) {
  constexpr int elements = 20'000;
  constexpr std::int64_t slack = 64 << 10;
  const ScratchFolder folder;
  Program program({"--port", "0", "--unixsocket", folder.file("s")});
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  WireClient client = WireClient::unix_socket(folder.file("s"));
  const auto used = [&] {
    const std::string info = client.call({"INFO", "memory"});
    const std::string field = "used_memory:";
    return std::stoll(info.substr(info.find(field) + field.size()));
  };
  const auto fill_and_empty = [&] {
    for (int i = 0; i < elements; ++i) {
      const std::string word = std::to_string(i);
      client.send(encode({"SADD", "set", word}) + encode({"ZADD", "zset", word, word}) +
                  encode({"HSET", "hash", word, word}) + encode({"RPUSH", "list", word}) +
                  encode({"SET", "key:" + word, word}));
      for (int reply = 0; reply < 5; ++reply) client.reply();
    }
    client.call({"SORT", "set", "BY", "nothing*", "STORE", "sorted"});
    EXPECT_EQ(client.call({"FLUSHALL", "SYNC"}), "+OK\r\n");
  };
  fill_and_empty();
  const std::int64_t before = used();
  for (int round = 0; round < 3; ++round) fill_and_empty();
  EXPECT_LT(used(), before + slack);
  EXPECT_GT(used(), before - slack);
}

// What a shutdown does to the data: as configured, and as the client requests.
struct Stopping {
  const char* name;
  const char* save;
  std::vector<std::string> words;  // empty: SIGTERM
  bool keeps;

  friend void PrintTo(const Stopping& stopping, std::ostream* out) { *out << stopping.name; }
};
class StoppedWithData : public ::testing::TestWithParam<Stopping> {};

TEST_P(StoppedWithData, keeps_it_if_that_is_asked_for) {
  const ScratchFolder folder;
  const std::vector<std::string> arguments{"--port", "0",           "--unixsocket", folder.file("s"),
                                           "--dir",  folder.path(), "--save",       GetParam().save};
  {
    Program program(arguments);
    ASSERT_TRUE(program.prints("Ready to accept connections"));
    WireClient client = WireClient::unix_socket(folder.file("s"));
    EXPECT_EQ(client.call({"SET", "k", "v"}), "+OK\r\n");
    if (GetParam().words.empty()) {
      program.signal(SIGTERM);
    } else {
      client.send(encode(GetParam().words));
    }
    EXPECT_EQ(client.until_closed(), "");
    EXPECT_EQ(program.exit_code(), 0);
  }
  Program program(arguments);
  ASSERT_TRUE(program.prints("Ready to accept connections"));
  EXPECT_EQ(WireClient::unix_socket(folder.file("s")).call({"EXISTS", "k"}),
            GetParam().keeps ? ":1\r\n" : ":0\r\n");
}
const Stopping stoppings[] = {
    {"signal_without_save_points", "", {}, false},
    {"signal_with_save_points", "3600 1", {}, true},
    {"SHUTDOWN_without_save_points", "", {"SHUTDOWN"}, false},
    {"SHUTDOWN_with_save_points", "3600 1", {"SHUTDOWN"}, true},
    {"SHUTDOWN_SAVE", "", {"SHUTDOWN", "SAVE"}, true},
    {"SHUTDOWN_NOSAVE", "3600 1", {"SHUTDOWN", "NOSAVE"}, false},
};
INSTANTIATE_TEST_SUITE_P(Ways, StoppedWithData, ::testing::ValuesIn(stoppings),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Program, does_not_start_with_a_snapshot_that_is_damaged) {
  const ScratchFolder folder;
  std::ofstream(folder.file("dump.rdb")) << "REDIS0010 and nonsense";
  Program program({"--port", "0", "--unixsocket", folder.file("s"), "--dir", folder.path()});
  EXPECT_NE(program.output().find("dump.rdb is not loaded: "), std::string::npos) << program.output();
  EXPECT_EQ(program.exit_code(), 1);
  EXPECT_TRUE(std::filesystem::exists(folder.file("dump.rdb")));
}

}  // namespace
}  // namespace weir::kv::testing
