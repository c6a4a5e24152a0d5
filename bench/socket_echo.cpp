// Echo of raw bytes over TCP: the kernel's limit for any RPC, in the row format of rpc_echo_bench.
//
//   socket_echo_bench --bytes 128 --in-flight 1,4,16,64,256 [--connections one|each]
//
// Server and client poll epoll for a while before they sleep in it, read what is available from each ready
// socket, and then write the same amount, with one call each; neither looks at the bytes. The bytes to be
// written to a connection are just a number, because all bytes are equal.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <functional>
#include <stdexcept>

#include "bench/echo_program.hpp"
#include "transport/tcp_pacing.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Options = weir::bench::EchoOptions;

constexpr std::size_t most_at_once = 1 << 20;
std::vector<char> scratch(most_at_once), payload(most_at_once, 'x');

int checked(int result, const char* what) {
  if (result < 0) throw std::runtime_error(what);
  return result;
}

class Connection {
 public:
  Connection(int epoll, int fd) : epoll_(epoll), fd_(fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(EPOLL_CTL_ADD, EPOLLIN);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Returns how many bytes arrived; if 0, open() says whether more may come.
  std::size_t receive() {
    const ssize_t came = recv(fd_, scratch.data(), scratch.size(), MSG_DONTWAIT);
    open_ = came > 0 || (came < 0 && errno == EAGAIN);
    return came > 0 ? static_cast<std::size_t>(came) : 0;
  }
  void send(std::size_t bytes) {
    waiting_ += bytes;
    flush();
  }
  void flush() {
    while (waiting_ > 0) {
      const ssize_t went =
          ::send(fd_, payload.data(), std::min(waiting_, payload.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (went <= 0) break;
      waiting_ -= static_cast<std::size_t>(went);
    }
    if (const bool full = waiting_ > 0; full != full_)
      watch(EPOLL_CTL_MOD, (full_ = full) ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }
  bool open() const { return open_; }

 private:
  void watch(int how, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.ptr = this}};
    checked(epoll_ctl(epoll_, how, fd_, &event), "epoll_ctl");
  }

  int epoll_, fd_;
  std::size_t waiting_ = 0;
  bool full_ = false, open_ = true;
};

// Waits for events. `ready` is called for each ready connection, and returns how many bytes to send on it.
template <class Ready>
void wait(int epoll, Ready ready) {
  std::array<epoll_event, 256> events;
  int count = 0;
  for (int looks = 0; looks < 500 && count == 0; ++looks)
    count = epoll_wait(epoll, events.data(), events.size(), 0);
  if (count == 0) count = epoll_wait(epoll, events.data(), events.size(), -1);
  std::array<std::size_t, events.size()> to_send;
  for (int i = 0; i < count; ++i)
    to_send[i] = ready(static_cast<Connection*>(events[i].data.ptr), events[i].events);
  for (int i = 0; i < count; ++i)
    if (to_send[i] > 0) static_cast<Connection*>(events[i].data.ptr)->send(to_send[i]);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

void serve(const std::function<void(const std::string&)>& tell) {
  const int listener = checked(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
  const weir::transport::AcceptedPacing pacing(listener);
  sockaddr_in at = loopback(0);
  socklen_t size = sizeof at;
  checked(bind(listener, reinterpret_cast<sockaddr*>(&at), size), "bind");
  checked(listen(listener, SOMAXCONN), "listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  const int epoll = checked(epoll_create1(0), "epoll_create1");
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};  // null: the listener
  checked(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
  tell(std::to_string(ntohs(at.sin_port)));
  for (;;)
    wait(epoll, [&](Connection* connection, std::uint32_t events) -> std::size_t {
      if (connection == nullptr) {
        for (int fd; (fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;)
          new Connection(epoll, fd);
        return 0;
      }
      if (events & EPOLLOUT) connection->flush();
      const std::size_t came = connection->receive();
      if (!connection->open()) delete connection;  // nothing came then
      return came;
    });
}

// Calls on one connection: answers come in the order of the requests.
struct Caller : Connection {
  using Connection::Connection;
  std::deque<Clock::time_point> begun;
  std::size_t came = 0;  // of the next answer
};

// Ends the calls whose replies arrived, and starts new ones in their place until `until`; returns how many
// bytes to send. `running` counts calls in flight.
std::size_t take(Caller& caller, std::size_t bytes, Clock::time_point until, std::vector<std::uint64_t>& took,
                 int& running) {
  caller.came += caller.receive();
  if (!caller.open()) throw std::runtime_error("the server has gone");
  const auto now = Clock::now();
  std::size_t again = 0;
  for (; caller.came >= bytes; caller.came -= bytes) {
    took.push_back(static_cast<std::uint64_t>((now - caller.begun.front()).count()));
    caller.begun.pop_front();
    if (now >= until) {
      --running;
    } else {
      caller.begun.push_back(now);
      again += bytes;
    }
  }
  return again;
}

void measure(const std::string& port, const Options& options, int in_flight, pid_t server) {
  const int epoll = checked(epoll_create1(0), "epoll_create1");
  const sockaddr_in to = loopback(static_cast<std::uint16_t>(std::stoi(port)));
  std::deque<Caller> callers;
  for (int i = 0; i < (options.each ? in_flight : 1); ++i) {
    const int fd = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
    weir::transport::spare_pacing(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    checked(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), "connect");
    callers.emplace_back(epoll, fd);
  }
  const auto phase = [&](Clock::time_point until, std::vector<std::uint64_t>& took) -> std::uint64_t {
    const auto now = Clock::now();
    const auto of_each = static_cast<std::size_t>(in_flight) / callers.size();
    for (Caller& caller : callers) {
      caller.begun.assign(of_each, now);
      caller.send(of_each * options.bytes);
    }
    for (int running = in_flight; running > 0;)
      wait(epoll, [&](Connection* ready, std::uint32_t events) {
        if (events & EPOLLOUT) ready->flush();
        return take(static_cast<Caller&>(*ready), options.bytes, until, took, running);
      });
    return 0;  // an answer that is not complete is waited for, a server that has gone ends the program
  };
  weir::bench::print_echo("sockets", options, in_flight, server, phase);
}

}  // namespace

int main(int count, char** values) {
  Options options;
  CLI::App app("Echo over sockets alone: calls per second and latencies");
  options.add_to(app);
  CLI11_PARSE(app, count, values);
  return weir::bench::run_echo(
      options, [](const auto& tell) { serve(tell); },
      [&](const std::string& port, int in_flight, pid_t server) {
        measure(port, options, in_flight, server);
      });
}
