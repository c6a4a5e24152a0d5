// Servers that give up root after they have started, as nginx's workers do: their connections change in the
// folder of the user that they have become. Runs under the preloaded library, without WEIR_RUNTIME_DIR.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "tests/sockets/tcp_pair.hpp"

namespace weir::sockets::test {
namespace {

constexpr uid_t user = 64'123;  // nobody's

// A child that becomes that user and then does `work`.
template <class Work>
pid_t as_user(Work work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const bool became = ::setgroups(0, nullptr) == 0 && ::setgid(user) == 0 && ::setuid(user) == 0;
  ::_exit(became && work() ? 0 : 1);
}

bool answers(const Listener& listener) {
  const int fd = listener.accept();
  while (receive(fd, a_question.size()) == a_question)
    if (!send_all(fd, an_answer)) return false;
  ::close(fd);
  return true;
}

// Until a question is not sent by TCP any more.
bool asks(const Listener& listener) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!listener.reach(fd)) return false;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (bool by_tcp = true; by_tcp && std::chrono::steady_clock::now() < until;) {
    const auto before = bytes_by_tcp(fd);
    if (!send_all(fd, a_question) || receive(fd, an_answer.size()) != an_answer) return false;
    by_tcp = bytes_by_tcp(fd) != before;
    if (!by_tcp) return ::close(fd) == 0;
  }
  return false;
}

TEST(GivesUpRoot, connections_of_what_was_root_change) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TcpPair roots;
  ASSERT_TRUE(change_to_ring(roots)) << "root has a folder of its own, and uses it";
  const Listener listener;
  const pid_t server = as_user([&] { return answers(listener); });
  const pid_t client = as_user([&] { return asks(listener); });
  ASSERT_GT(server, 0);
  ASSERT_GT(client, 0);
  for (const pid_t child : {client, server}) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << (child == client ? "the connection stayed on TCP" : "the server");
  }
  std::filesystem::remove_all("/dev/shm/weir-" + std::to_string(user));
}

}  // namespace
}  // namespace weir::sockets::test
