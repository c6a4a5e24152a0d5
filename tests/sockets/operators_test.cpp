// What an operator sees and does: `weir sockets` lists why an end is on TCP, `weir sockets --off PID` returns
// a process's connections to TCP. Runs under the preloaded library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tests/cli/run_weir.hpp"
#include "tests/sockets/tcp_pair.hpp"

namespace weir::sockets::test {
namespace {

using command::Ended;
using command::run_weir;

constexpr std::uint64_t by_ring = 0, by_tcp = a_question.size() + an_answer.size();
constexpr int exchanges = 200;
constexpr std::chrono::seconds longest{20};

// Another process: accepts one connection after the other and answers its questions.
class Server {
 public:
  Server() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address_), size), 0);
    EXPECT_EQ(::listen(listener_, 4), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
    child_ = ::fork();
    EXPECT_GE(child_, 0);
    if (child_ == 0) answer_all();
    ::close(listener_);
  }
  ~Server() { kill(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  pid_t pid() const { return child_; }
  const sockaddr_in& address() const { return address_; }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, 0), nullptr, 0);
  }

 private:
  [[noreturn]] void answer_all() const {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) ::_exit(1);
      while (receive(fd, a_question.size()) == a_question && send_all(fd, an_answer)) {
      }
      ::close(fd);
    }
  }

  const int listener_;
  sockaddr_in address_{};
  pid_t child_ = 0;
};

class Caller {
 public:
  explicit Caller(const Server& server) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&server.address()), sizeof server.address()),
              0);
  }
  ~Caller() { ::close(fd_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // How many bytes of a question and its answer TCP carried.
  std::uint64_t ask() const {
    const auto before = carried_by_tcp();
    EXPECT_TRUE(send_all(fd_, a_question));
    EXPECT_EQ(receive(fd_, an_answer.size()), an_answer);
    return carried_by_tcp() - before;
  }
  // Asks until TCP carries that many. False: it never did.
  bool asks_until(std::uint64_t bytes) const {
    const auto until = std::chrono::steady_clock::now() + longest;
    while (std::chrono::steady_clock::now() < until && !::testing::Test::HasFailure())
      if (ask() == bytes) return true;
    return false;
  }

 private:
  std::uint64_t carried_by_tcp() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    EXPECT_EQ(::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return written_to_tcp(fd_) + info.tcpi_bytes_received;
  }

  const int fd_;
};

// The ends of that process, as `weir sockets --json` lists them.
std::vector<nlohmann::json> listed_ends(pid_t pid) {
  const Ended list = run_weir({"sockets", "--json"});
  EXPECT_EQ(list.status, 0) << list.out;
  std::vector<nlohmann::json> ends;
  for (const auto& end : nlohmann::json::parse(list.out))
    if (end.at("pid") == pid) ends.push_back(end);
  return ends;
}

Ended put_back(pid_t pid) { return run_weir({"sockets", "--off", std::to_string(pid)}); }

class Operators : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ::unsetenv("LD_PRELOAD"); }  // only this program is a user's
};

TEST_F(Operators, off_returns_the_connections_of_a_process_and_keeps_its_later_ones_on_tcp) {
  const Server server;
  {
    const Caller caller(server);
    ASSERT_TRUE(caller.asks_until(by_ring)) << "the connection stayed on TCP";
    const Ended off = put_back(server.pid());
    EXPECT_EQ(off.status, 0);
    EXPECT_THAT(off.out, ::testing::HasSubstr("[" + std::to_string(server.pid()) +
                                              "]: its connections, 1 in the table, go back to TCP"));
    ASSERT_TRUE(caller.asks_until(by_tcp)) << "the connection stayed on RDMA";
    for (int i = 0; i < exchanges; ++i) ASSERT_EQ(caller.ask(), by_tcp);
  }
  const Caller later(server);
  for (int i = 0; i < exchanges; ++i) ASSERT_EQ(later.ask(), by_tcp);
}

TEST_F(Operators, the_list_says_that_an_operator_did_it) {
  const Server server;
  const Caller caller(server);
  ASSERT_TRUE(caller.asks_until(by_ring));
  ASSERT_EQ(caller.ask(), by_ring);  // the server has counted what it sent the time before
  const auto before = listed_ends(server.pid());
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].at("sends_by_rdma"), true);
  EXPECT_EQ(before[0].at("receives_by_rdma"), true);
  EXPECT_GT(before[0].at("bytes_sent_by_rdma"), 0);
  EXPECT_EQ(before[0].at("why_not"), "");
  ASSERT_EQ(put_back(server.pid()).status, 0);
  ASSERT_TRUE(caller.asks_until(by_tcp));
  const auto after = listed_ends(server.pid());
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].at("sends_by_rdma"), false);
  EXPECT_EQ(after[0].at("receives_by_rdma"), false);
  EXPECT_EQ(after[0].at("why_not"), "was put back by an operator");
  const auto peers = listed_ends(::getpid());
  ASSERT_EQ(peers.size(), 1u);
  EXPECT_EQ(peers[0].at("why_not"), "has a peer whose end was put back by an operator");
}

TEST_F(Operators, off_leaves_the_connections_of_other_processes) {
  const Server one, another;
  const Caller to_one(one), to_another(another);
  ASSERT_TRUE(to_one.asks_until(by_ring));
  ASSERT_TRUE(to_another.asks_until(by_ring));
  ASSERT_EQ(put_back(one.pid()).status, 0);
  ASSERT_TRUE(to_one.asks_until(by_tcp));
  for (int i = 0; i < exchanges; ++i) ASSERT_EQ(to_another.ask(), by_ring);
}

TEST_F(Operators, off_refuses_a_process_that_has_no_connections) {
  Server server;
  const pid_t pid = server.pid();
  {
    const Caller caller(server);
    ASSERT_TRUE(caller.asks_until(by_ring));
    server.kill();
  }
  const Ended off = put_back(pid);
  EXPECT_EQ(off.status, 1);
  EXPECT_THAT(off.out, ::testing::HasSubstr("no process " + std::to_string(pid) + " of this user"));
}

// Takes all completion queues that the process's NIC has left.
class NoRoom {
 public:
  NoRoom() {
    int count = 0;
    ibv_device** const devices = ::ibv_get_device_list(&count);
    EXPECT_GT(count, 0);
    context_ = ::ibv_open_device(devices[0]);
    ::ibv_free_device_list(devices);
    while (ibv_cq* const one = ::ibv_create_cq(context_, 1, nullptr, nullptr, 0)) all_.push_back(one);
  }
  ~NoRoom() {
    for (ibv_cq* const one : all_) ::ibv_destroy_cq(one);
    ::ibv_close_device(context_);
  }
  NoRoom(const NoRoom&) = delete;
  NoRoom& operator=(const NoRoom&) = delete;

 private:
  ibv_context* context_ = nullptr;
  std::vector<ibv_cq*> all_;
};

TEST_F(Operators, the_list_says_that_the_device_has_no_room_and_the_connection_stays_on_tcp) {
  const Server server;
  {
    const NoRoom none;
    const Caller caller(server);
    const auto until = std::chrono::steady_clock::now() + longest;
    std::string why;
    while (why.empty() && std::chrono::steady_clock::now() < until) {
      for (int i = 0; i < exchanges; ++i) ASSERT_EQ(caller.ask(), by_tcp);
      const auto ends = listed_ends(::getpid());
      if (!ends.empty()) why = ends[0].at("why_not");
    }
    EXPECT_EQ(why, "found no RDMA device, or no room on it");
    for (int i = 0; i < exchanges; ++i) ASSERT_EQ(caller.ask(), by_tcp);
  }
  const Caller later(server);
  EXPECT_TRUE(later.asks_until(by_ring)) << "there is room again";
}

}  // namespace
}  // namespace weir::sockets::test
