// A unix socket whose listener has not accepted for a while, so its queue is full.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <asio/co_spawn.hpp>

#include "rpc/client.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::rpc {
namespace {

class FullBacklog : public testing::Test {
 protected:
  test::ScratchDirectory folder;
  std::string path = folder.file("s");
  sockaddr_un name{};
  int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  std::vector<int> waiting;
  asio::io_context io{1};
  std::optional<Result<Client>> made;

  void SetUp() override {
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    ASSERT_EQ(::listen(listener, 0), 0);
    while (fill()) {
    }
  }
  void TearDown() override {
    for (const int fd : waiting) ::close(fd);
    ::close(listener);
  }
  bool fill() {
    waiting.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return ::connect(waiting.back(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  }
  asio::awaitable<void> connect_it(std::chrono::milliseconds timeout) {
    ConnectOptions options;
    options.connect_timeout = timeout;
    const std::string address = "unix://" + path;
    Result<Client> result = co_await connect(address, options);
    made.emplace(std::move(result));
  }
  void connect_within(std::chrono::milliseconds timeout) {
    asio::co_spawn(io, connect_it(timeout), [](const std::exception_ptr& thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
  }
};

TEST_F(FullBacklog, client_waits_for_room) {
  connect_within(std::chrono::seconds(30));
  io.run_for(std::chrono::milliseconds(20));
  ASSERT_FALSE(made) << made->error().what;
  // Every client waits for the server's hello.
  const auto greet_one = [this] {
    waiting.push_back(::accept(listener, nullptr, nullptr));
    if (waiting.back() < 0) return;
    FrameHeader hello;
    hello.kind = FrameKind::settings;
    std::array<std::byte, frame_header_bytes> bytes;
    encode(hello, bytes.data());
    static_cast<void>(::send(waiting.back(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  };
  while (!made) {
    greet_one();
    io.run_one_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(*made) << made->error().what;
}

TEST_F(FullBacklog, client_gives_up_when_its_time_is_over) {
  connect_within(std::chrono::milliseconds(20));
  while (!made) io.run_one();
  ASSERT_FALSE(*made);
  EXPECT_EQ(made->error().code, Errc::unreachable);
}

}  // namespace
}  // namespace weir::rpc
