// Calls whose answers must be the kernel's. Runs under the preloaded library, with and without frequent
// changes of carriers, and once more without the library: there the kernel judges the tests themselves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/sockets/change_fixture.hpp"
#include "tests/sockets/sleeping_thread.hpp"

namespace weir::sockets::test {
namespace {

using AsTheKernel = Change;

TEST_F(AsTheKernel, the_queue_of_errors_holds_no_byte_of_the_stream) {
  ASSERT_TRUE(send_all(pair_.client, "stream"));
  ASSERT_TRUE(readable(pair_.server, longest_ms));
  std::array<char, 8> bytes{};
  EXPECT_EQ(::recv(pair_.server, bytes.data(), bytes.size(), MSG_ERRQUEUE), -1);
  EXPECT_EQ(errno, EAGAIN);
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  EXPECT_EQ(::recvmsg(pair_.server, &message, MSG_ERRQUEUE), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(receive(pair_.server, 6), "stream");
}

volatile sig_atomic_t broken_pipes = 0;

// Counts SIGPIPE while it lives.
class BrokenPipes {
 public:
  BrokenPipes() {
    broken_pipes = 0;
    struct sigaction counts{};
    counts.sa_handler = [](int) { broken_pipes = broken_pipes + 1; };
    EXPECT_EQ(::sigaction(SIGPIPE, &counts, &before_), 0);
  }
  ~BrokenPipes() { ::sigaction(SIGPIPE, &before_, nullptr); }
  BrokenPipes(const BrokenPipes&) = delete;
  BrokenPipes& operator=(const BrokenPipes&) = delete;

 private:
  struct sigaction before_{};
};

struct HalfClose {
  const char* what;
  int (*shut)(int fd);
};

constexpr HalfClose half_closes[] = {
    {"shutdown", [](int fd) { return ::shutdown(fd, SHUT_WR); }},
    {"syscall", [](int fd) { return static_cast<int>(::syscall(SYS_shutdown, fd, SHUT_WR)); }},
    {"both ways", [](int fd) { return ::shutdown(fd, SHUT_RDWR); }},
    {"another thread",
     [](int fd) {
       int result = -1;
       std::thread([&] { result = ::shutdown(fd, SHUT_WR); }).join();
       return result;
     }},
    {"a copy of the descriptor",
     [](int fd) {
       const int copy = ::dup(fd), result = ::shutdown(copy, SHUT_WR);
       ::close(copy);
       return result;
     }},
    {"a forked child", [](int fd) {
       const pid_t child = ::fork();
       if (child == 0) ::_exit(::shutdown(fd, SHUT_WR));
       int status = -1;
       ::waitpid(child, &status, 0);
       return status;
     }}};

TEST_F(AsTheKernel, nothing_is_written_after_half_close) {
  for (const HalfClose& row : half_closes) {
    SCOPED_TRACE(row.what);
    TcpPair pair;
    ASSERT_NO_FATAL_FAILURE(warm_up(pair));
    ASSERT_TRUE(send_all(pair.client, "last words"));
    ASSERT_EQ(row.shut(pair.client), 0);
    const BrokenPipes pipes;
    EXPECT_EQ(::write(pair.client, "late", 4), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(broken_pipes, 1);
    EXPECT_EQ(::send(pair.client, "late", 4, MSG_NOSIGNAL), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(broken_pipes, 1);
    EXPECT_EQ(receive(pair.server, 100), "last words");
    char byte = 0;
    EXPECT_EQ(::recv(pair.server, &byte, 1, MSG_DONTWAIT), 0) << "again, behind the end";
  }
}

struct Disconnecting {
  const char* what;
  int (*disconnect)(int fd, const sockaddr& nowhere);
};

TEST_F(AsTheKernel, a_descriptor_connected_again_reaches_its_new_peer) {
  for (const Disconnecting& row :
       {Disconnecting{
            "connect",
            [](int fd, const sockaddr& nowhere) { return ::connect(fd, &nowhere, sizeof nowhere); }},
        {"syscall",
         [](int fd, const sockaddr& nowhere) {
           return static_cast<int>(::syscall(SYS_connect, fd, &nowhere, sizeof nowhere));
         }},
        {"a copy", [](int fd, const sockaddr& nowhere) {
           const int copy = ::dup(fd), result = ::connect(copy, &nowhere, sizeof nowhere);
           ::close(copy);
           return result;
         }}}) {
    SCOPED_TRACE(row.what);
    TcpPair pair;
    ASSERT_NO_FATAL_FAILURE(warm_up(pair));
    const int old_peer = std::exchange(pair.server, -1);
    ASSERT_TRUE(send_all(old_peer, "never read"));
    sockaddr nowhere{};
    nowhere.sa_family = AF_UNSPEC;
    ASSERT_EQ(row.disconnect(pair.client, nowhere), 0);
    EXPECT_FALSE(send_all(pair.client, "to nobody"));
    char byte = 0;
    EXPECT_EQ(::recv(old_peer, &byte, 1, 0), -1);
    EXPECT_EQ(errno, ECONNRESET);
    pair.server = Listener().connect(pair.client);
    for (int i = 0; i < 100; ++i) exchange(pair);
    EXPECT_EQ(::recv(old_peer, &byte, 1, 0), 0);
    ::close(old_peer);
  }
}

struct Call {
  const char* what;
  long (*make)(const TcpPair& pair, char* bytes);  // of 8 bytes
  int error;                                       // 0: `result` bytes
  long result;
};

constexpr std::size_t too_many = UIO_MAXIOV + 1;

int fewer_than_none() {
  static volatile int none = 0;  // the compiler would warn
  return none - 1;
}

std::vector<iovec> pieces(char* bytes, std::size_t count) { return {count, iovec{bytes, 1}}; }

long send_message(int fd, std::vector<iovec> all) {
  msghdr message{};
  message.msg_iov = all.data();
  message.msg_iovlen = all.size();
  return ::sendmsg(fd, &message, 0);
}

long receive_message(int fd, std::vector<iovec> all) {
  msghdr message{};
  message.msg_iov = all.data();
  message.msg_iovlen = all.size();
  return ::recvmsg(fd, &message, MSG_DONTWAIT);
}

// In this order. What is written by one row is read by a later one.
constexpr Call calls[] = {
    {"recv of nothing, no byte there",
     [](const TcpPair& on, char* bytes) { return ::recv(on.server, bytes, 0, MSG_DONTWAIT); }, EAGAIN, 0},
    {"read of nothing, no byte there",
     [](const TcpPair& on, char* bytes) { return ::read(on.server, bytes, 0); }, 0, 0},
    {"readv of nothing, no byte there",
     [](const TcpPair& on, char* bytes) {
       const iovec piece{bytes, 0};
       return ::readv(on.server, &piece, 1);
     },
     0, 0},
    {"preadv2 that does not wait, no byte there",
     [](const TcpPair& on, char* bytes) {
       const iovec piece{bytes, 8};
       return ::preadv2(on.server, &piece, 1, -1, RWF_NOWAIT);
     },
     EAGAIN, 0},
    {"write of nothing", [](const TcpPair& on, char* bytes) { return ::write(on.client, bytes, 0); }, 0, 0},
    {"writev of too many pieces",
     [](const TcpPair& on, char* bytes) {
       return ::writev(on.client, pieces(bytes, too_many).data(), too_many);
     },
     EINVAL, 0},
    {"writev of fewer than no pieces",
     [](const TcpPair& on, char* bytes) {
       return ::writev(on.client, pieces(bytes, 1).data(), fewer_than_none());
     },
     EINVAL, 0},
    {"writev of fewer than no bytes",
     [](const TcpPair& on, char* bytes) {
       const iovec piece{bytes, static_cast<std::size_t>(-1)};
       return ::writev(on.client, &piece, 1);
     },
     EINVAL, 0},
    {"sendmsg of too many pieces",
     [](const TcpPair& on, char* bytes) { return send_message(on.client, pieces(bytes, too_many)); },
     EMSGSIZE, 0},
    {"pwritev2 at an offset",
     [](const TcpPair& on, char* bytes) { return ::pwritev2(on.client, pieces(bytes, 1).data(), 1, 0, 0); },
     ESPIPE, 0},
    {"pwritev2",
     [](const TcpPair& on, char* bytes) { return ::pwritev2(on.client, pieces(bytes, 2).data(), 2, -1, 0); },
     0, 2},
    {"pwritev2 by number",
     [](const TcpPair& on, char* bytes) {
       return ::syscall(SYS_pwritev2, on.client, pieces(bytes, 2).data(), 2, -1L, -1L, 0);
     },
     0, 2},
    {"readv into too many pieces",
     [](const TcpPair& on, char* bytes) {
       return ::readv(on.server, pieces(bytes, too_many).data(), too_many);
     },
     EINVAL, 0},
    {"readv into fewer than no pieces",
     [](const TcpPair& on, char* bytes) {
       return ::readv(on.server, pieces(bytes, 1).data(), fewer_than_none());
     },
     EINVAL, 0},
    {"recvmsg into too many pieces",
     [](const TcpPair& on, char* bytes) { return receive_message(on.server, pieces(bytes, too_many)); },
     EMSGSIZE, 0},
    {"recv of nothing", [](const TcpPair& on, char* bytes) { return ::recv(on.server, bytes, 0, 0); }, 0, 0},
    {"preadv2 at an offset",
     [](const TcpPair& on, char* bytes) { return ::preadv2(on.server, pieces(bytes, 1).data(), 1, 0, 0); },
     ESPIPE, 0},
    {"preadv2",
     [](const TcpPair& on, char* bytes) { return ::preadv2(on.server, pieces(bytes, 1).data(), 1, -1, 0); },
     0, 1},
    {"preadv2 by number",
     [](const TcpPair& on, char* bytes) {
       return ::syscall(SYS_preadv2, on.server, pieces(bytes, 1).data(), 1, -1L, -1L, 0);
     },
     0, 1},
    {"preadv2 that does not wait",
     [](const TcpPair& on, char* bytes) {
       EXPECT_TRUE(readable(on.server, longest_ms));
       return ::preadv2(on.server, pieces(bytes, 1).data(), 1, -1, RWF_NOWAIT);
     },
     0, 1},
    {"the last byte", [](const TcpPair& on, char* bytes) { return ::recv(on.server, bytes, 1, 0); }, 0, 1},
    {"no more bytes",
     [](const TcpPair& on, char* bytes) { return ::recv(on.server, bytes, 8, MSG_DONTWAIT); }, EAGAIN, 0},
};

TEST_F(AsTheKernel, odd_arguments_have_the_kernels_answers) {
  std::array<char, 8> bytes{};
  for (const Call& row : calls) {
    SCOPED_TRACE(row.what);
    errno = 0;
    const long result = row.make(pair_, bytes.data());
    EXPECT_EQ(result, row.error == 0 ? row.result : -1) << std::strerror(errno);
    EXPECT_EQ(errno, row.error);
  }
  exchange(pair_);
}

TEST_F(AsTheKernel, a_peek_waits_for_all_that_it_wants) {
  std::atomic<pid_t> id{0};
  std::thread peeks([&] {
    id = ::gettid();
    std::array<char, 8> bytes{};
    EXPECT_EQ(::recv(pair_.server, bytes.data(), bytes.size(), MSG_PEEK | MSG_WAITALL), 8);
    EXPECT_EQ(std::string(bytes.data(), bytes.size()), "one, two");
  });
  ASSERT_TRUE(send_all(pair_.client, "one,"));
  await_sleep_of(id);
  ASSERT_TRUE(send_all(pair_.client, " two"));
  peeks.join();
  EXPECT_EQ(receive(pair_.server, 8), "one, two");
  exchange(pair_);
}

TEST_F(AsTheKernel, a_peek_that_waits_for_all_ends_in_time) {
  const timeval limit{.tv_sec = 0, .tv_usec = 20'000};
  ASSERT_EQ(::setsockopt(pair_.server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  ASSERT_TRUE(send_all(pair_.client, "half"));
  ASSERT_TRUE(readable(pair_.server, longest_ms));
  std::array<char, 8> bytes{};
  EXPECT_EQ(::recv(pair_.server, bytes.data(), bytes.size(), MSG_PEEK | MSG_WAITALL), 4)
      << std::strerror(errno);
  EXPECT_EQ(receive(pair_.server, 4), "half");
}

TEST_F(AsTheKernel, sendfile_takes_a_file_but_no_pipe_and_no_socket) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::write(pipe[1], "pipe", 4), 4);
  off_t offset = 0;
  EXPECT_EQ(::sendfile(pair_.client, pipe[0], nullptr, 4), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::sendfile(pair_.client, pipe[0], &offset, 4), -1);
  EXPECT_EQ(errno, ESPIPE);
  EXPECT_EQ(::sendfile(pair_.client, pair_.server, nullptr, 4), -1);
  EXPECT_EQ(errno, EINVAL);
  const int file = ::memfd_create("content", MFD_CLOEXEC);
  ASSERT_EQ(::pwrite(file, "content", 7, 0), 7);
  EXPECT_EQ(::sendfile(pair_.client, file, nullptr, 100), 7);
  EXPECT_EQ(receive(pair_.server, 7), "content");
  for (const int fd : {pipe[0], pipe[1], file}) ::close(fd);
}

}  // namespace
}  // namespace weir::sockets::test
