// Under librspreload.so: each call that sends or receives.
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/rspreload/preloaded.hpp"

namespace weir::rspreload {
namespace {

// Each way to send five bytes.
struct Sending {
  const char* how;
  ssize_t (*send)(int fd, const char* bytes);
};
ssize_t in_two_pieces(const char* bytes, auto call) {
  iovec pieces[] = {{const_cast<char*>(bytes), 2}, {const_cast<char*>(bytes) + 2, 3}};
  return call(pieces);
}
ssize_t from_file(const char* bytes, auto call) {
  Fd file(::memfd_create("file", 0));
  EXPECT_EQ(::write(file.get(), "..", 2), 2);
  EXPECT_EQ(::write(file.get(), bytes, 5), 5);
  off64_t at = 2;
  const ssize_t sent = call(file.get(), &at);
  EXPECT_EQ(at, 7);
  EXPECT_EQ(::lseek(file.get(), 2, SEEK_SET), 2);
  return sent;
}
const Sending sendings[] = {
    {"write", [](int fd, const char* bytes) { return ::write(fd, bytes, 5); }},
    {"send", [](int fd, const char* bytes) { return ::send(fd, bytes, 5, MSG_NOSIGNAL); }},
    {"sendto", [](int fd, const char* bytes) { return ::sendto(fd, bytes, 5, 0, nullptr, 0); }},
    {"writev",
     [](int fd, const char* bytes) {
       return in_two_pieces(bytes, [&](iovec* pieces) { return ::writev(fd, pieces, 2); });
     }},
    {"sendmsg",
     [](int fd, const char* bytes) {
       return in_two_pieces(bytes, [&](iovec* pieces) {
         msghdr message{};
         message.msg_iov = pieces;
         message.msg_iovlen = 2;
         return ::sendmsg(fd, &message, 0);
       });
     }},
    {"sendmmsg",
     [](int fd, const char* bytes) {
       return in_two_pieces(bytes, [&](iovec* pieces) -> ssize_t {
         mmsghdr messages[2]{};
         for (int i = 0; i < 2; ++i) {
           messages[i].msg_hdr.msg_iov = pieces + i;
           messages[i].msg_hdr.msg_iovlen = 1;
         }
         if (::sendmmsg(fd, messages, 2, 0) != 2) return -1;
         return messages[0].msg_len + messages[1].msg_len;
       });
     }},
    {"sendfile",
     [](int fd, const char* bytes) {
       return from_file(bytes, [&](int file, off64_t* at) { return ::sendfile64(fd, file, at, 100); });
     }},
    {"sendfile_from_where_it_is",
     [](int fd, const char* bytes) -> ssize_t {
       Fd file(::memfd_create("file", 0));
       EXPECT_EQ(::write(file.get(), bytes, 5), 5);
       EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
       const ssize_t sent = ::sendfile(fd, file.get(), nullptr, 5);
       EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 5);
       return sent;
     }},
};

TEST_F(Calls, send_each_way) {
  for (const Sending& one : sendings) {
    EXPECT_EQ(one.send(from(), "hello"), 5) << one.how;
    EXPECT_EQ(received(5), "hello") << one.how;
  }
}

// Each way to receive what is there.
struct Receiving {
  const char* how;
  ssize_t (*receive)(int fd, char* bytes, std::size_t size);
};
ssize_t into_two_pieces(char* bytes, std::size_t size, auto call) {
  iovec pieces[] = {{bytes, 2}, {bytes + 2, size - 2}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  return call(message);
}
const Receiving receivings[] = {
    {"read", [](int fd, char* bytes, std::size_t size) { return ::read(fd, bytes, size); }},
    {"recv", [](int fd, char* bytes, std::size_t size) { return ::recv(fd, bytes, size, 0); }},
    {"recvfrom",
     [](int fd, char* bytes, std::size_t size) { return ::recvfrom(fd, bytes, size, 0, nullptr, nullptr); }},
    {"readv",
     [](int fd, char* bytes, std::size_t size) {
       return into_two_pieces(bytes, size, [&](msghdr& message) { return ::readv(fd, message.msg_iov, 2); });
     }},
    {"recvmsg",
     [](int fd, char* bytes, std::size_t size) {
       return into_two_pieces(bytes, size, [&](msghdr& message) { return ::recvmsg(fd, &message, 0); });
     }},
    {"recvmmsg",
     [](int fd, char* bytes, std::size_t size) {
       return into_two_pieces(bytes, size, [&](msghdr& message) -> ssize_t {
         char more[1];
         iovec last{more, sizeof more};
         mmsghdr messages[2]{};
         messages[0].msg_hdr = message;
         messages[1].msg_hdr.msg_iov = &last;
         messages[1].msg_hdr.msg_iovlen = 1;
         timespec limit{.tv_sec = 1, .tv_nsec = 0};
         return ::recvmmsg(fd, messages, 2, MSG_WAITFORONE, &limit) == 1 ? ssize_t{messages[0].msg_len} : -1;
       });
     }},
    {"read_of_a_size_the_compiler_knows",
     [](int fd, char* bytes, std::size_t size) {
       char known[64];
       const ssize_t got = ::read(fd, known, size);
       std::memcpy(bytes, known, 5);
       return got;
     }},
    {"recv_of_a_size_the_compiler_knows",
     [](int fd, char* bytes, std::size_t size) {
       char known[64];
       const ssize_t got = ::recv(fd, known, size, 0);
       std::memcpy(bytes, known, 5);
       return got;
     }},
    {"recvfrom_of_a_size_the_compiler_knows",
     [](int fd, char* bytes, std::size_t size) {
       char known[64];
       const ssize_t got = ::recvfrom(fd, known, size, 0, nullptr, nullptr);
       std::memcpy(bytes, known, 5);
       return got;
     }},
};

TEST_F(Calls, receive_each_way) {
  // Not a constant: the compiler must not see that it is right.
  const std::size_t size = static_cast<std::size_t>(std::atoi("40"));
  for (const Receiving& one : receivings) {
    send_and_wait("hello");
    std::string bytes(size, '\0');
    EXPECT_EQ(one.receive(to(), bytes.data(), size), 5) << one.how;
    EXPECT_EQ(bytes.substr(0, 5), "hello") << one.how;
    EXPECT_EQ(one.receive(to(), bytes.data(), size), -1) << one.how;
    EXPECT_EQ(errno, EAGAIN) << one.how;
  }
}

}  // namespace
}  // namespace weir::rspreload
