// A second process for process_test. It ends when its standard input ends, or as told.
//   rsocket_peer echo        prints "port N", sends back what it receives, one connection after the other
//   rsocket_peer flood       prints "port N", sends without end to each client
//   rsocket_peer sink        prints "port N", reads without end
//   rsocket_peer silent      prints "port N", accepts and does nothing
//   rsocket_peer exit        prints "port N", accepts, sends "bye" and exits without closing
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(1);
}

int listen_and_say_where() {
  const int listener = ::rsocket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  check(listener >= 0, "rsocket");
  check(::rbind(listener, name, size) == 0, "rbind");
  check(::rlisten(listener, 8) == 0, "rlisten");
  check(::rgetsockname(listener, name, &size) == 0, "rgetsockname");
  std::printf("port %u\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listener;
}

// Waits for `events` of the socket, or exits when standard input ends.
void wait_for(int socket, short events) {
  pollfd both[] = {{socket, events, 0}, {STDIN_FILENO, POLLIN, 0}};
  check(::rpoll(both, 2, -1) > 0, "rpoll");
  if (both[1].revents != 0) std::exit(0);
}

int accept_one(int listener) {
  wait_for(listener, POLLIN);
  const int socket = ::raccept(listener, nullptr, nullptr);
  check(socket >= 0, "raccept");
  return socket;
}

void echo(int socket) {
  std::array<char, 65536> bytes;
  for (;;) {
    wait_for(socket, POLLIN);
    const auto got = ::rrecv(socket, bytes.data(), bytes.size(), 0);
    if (got <= 0) return;
    if (::rsend(socket, bytes.data(), static_cast<std::size_t>(got), 0) != got) return;
  }
}

void flood(int socket) {
  const std::array<char, 65536> bytes{};
  for (;;) {
    wait_for(socket, POLLOUT);
    if (::rsend(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) < 0 && errno != EAGAIN) return;
  }
}

void sink(int socket) {
  std::array<char, 65536> bytes;
  do {
    wait_for(socket, POLLIN);
  } while (::rrecv(socket, bytes.data(), bytes.size(), 0) > 0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int listener = listen_and_say_where();
  for (;;) {
    const int socket = accept_one(listener);
    if (what == "echo") echo(socket);
    if (what == "flood") flood(socket);
    if (what == "sink") sink(socket);
    if (what == "silent") wait_for(STDIN_FILENO, POLLIN);
    if (what == "exit") {
      check(::rsend(socket, "bye", 3, 0) == 3, "rsend");
      std::exit(0);
    }
    ::rclose(socket);
  }
}
