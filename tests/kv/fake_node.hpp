// A cluster node that replies as a test wants, on its own thread and at a free port of this host.
//
// It answers HELLO itself, and CLUSTER SLOTS with the value given to slots(). For all other requests a
// function of the test returns the reply. An empty reply means none yet: say() sends it later. nullopt closes
// the connection.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kv/resp/request.hpp"
#include "transport/owned_fd.hpp"

namespace weir::kv::testing {

class FakeNode {
 public:
  using Words = std::vector<std::string>;
  using Answer = std::function<std::optional<std::string>(const Words&)>;

  FakeNode()
      : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), wake_(::eventfd(0, EFD_CLOEXEC)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listening_.get(), 16) != 0 ||
        ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error(std::strerror(errno));
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeNode() {
    stop();
    thread_.join();
  }

  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void answers(Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  // Its answer to CLUSTER SLOTS: a whole reply.
  void slots(std::string reply) {
    const std::lock_guard lock(mutex_);
    slots_ = std::move(reply);
  }
  void hello(std::string reply) {
    const std::lock_guard lock(mutex_);
    hello_ = std::move(reply);
  }
  // Sends text on the connection of the last request.
  void say(std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    send(last_, bytes);
  }
  // Sends text on the connection of the request with that index in requests().
  void say_to(std::size_t request, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    send(sources_.at(request), bytes);
  }
  // Closes that connection.
  void hang_up(std::size_t request) {
    const std::lock_guard lock(mutex_);
    ::shutdown(sources_.at(request), SHUT_RDWR);
  }
  // The descriptor on which each request arrived.
  std::vector<int> sources() {
    const std::lock_guard lock(mutex_);
    return sources_;
  }
  std::size_t connections() {
    const std::lock_guard lock(mutex_);
    return peers_.size();
  }
  // From here on it notes no requests, of which there will be many.
  void forget_requests() {
    const std::lock_guard lock(mutex_);
    notes_ = false;
  }
  // All requests except HELLO and CLUSTER SLOTS, in order of arrival.
  std::vector<Words> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<Words> greetings() {
    const std::lock_guard lock(mutex_);
    return greetings_;
  }
  // Waits until that many requests have arrived.
  void await(std::size_t count) {
    while (requests().size() < count) std::this_thread::yield();
  }
  // Closes its connections and accepts no new ones.
  void die() {
    const std::lock_guard lock(mutex_);
    dead_ = true;
    wake();
  }

 private:
  struct Peer {
    OwnedFd fd;
    std::string bytes;
  };

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    wake();
  }
  void wake() {
    const std::uint64_t one = 1;
    if (::write(wake_.get(), &one, sizeof one) < 0) throw std::runtime_error(std::strerror(errno));
  }
  static void send(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  void serve() {
    while (true) {
      std::vector<pollfd> waits{{wake_.get(), POLLIN, 0}};
      if (listening_) waits.push_back({listening_.get(), POLLIN, 0});
      for (const auto& [fd, peer] : peers_) waits.push_back({fd, POLLIN, 0});
      ::poll(waits.data(), waits.size(), -1);
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      if (dead_) {
        peers_.clear();
        listening_.close();
        std::uint64_t count = 0;
        if (::read(wake_.get(), &count, sizeof count) < 0) return;
        continue;
      }
      for (const pollfd& one : waits) {
        if (one.revents == 0 || one.fd == wake_.get()) continue;
        if (one.fd == listening_.get()) {
          OwnedFd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
          const int number = fd.get();
          if (fd) peers_[number].fd = std::move(fd);
        } else if (!read(one.fd)) {
          peers_.erase(one.fd);
        }
      }
    }
  }

  // Returns false once that connection is over.
  bool read(int fd) {
    char bytes[4096];
    const ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    std::string& input = peers_[fd].bytes;
    input.append(bytes, static_cast<std::size_t>(n));
    RequestParser parser;
    while (parser.parse(input, {}) == RequestParser::Status::complete) {
      Words words;
      for (const Argument& word : parser.arguments()) words.emplace_back(word.text);
      input.erase(0, parser.consumed());
      parser.next();
      const auto reply = reply_to(fd, words);
      if (!reply) return false;
      send(fd, *reply);
    }
    return true;
  }

  std::optional<std::string> reply_to(int fd, const Words& words) {
    if (words[0] == "HELLO") {
      greetings_.push_back(words);
      return hello_;
    }
    if (words[0] == "CLUSTER") return slots_;
    last_ = fd;
    if (notes_) {
      requests_.push_back(words);
      sources_.push_back(fd);
    }
    if (words[0] == "ASKING") return "+OK\r\n";
    return answer_ ? answer_(words) : std::optional<std::string>("+OK\r\n");
  }

  OwnedFd listening_, wake_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  Answer answer_;
  std::string slots_ = "*0\r\n";
  std::string hello_ = "*0\r\n";
  std::vector<Words> requests_, greetings_;
  std::vector<int> sources_;
  std::map<int, Peer> peers_;
  int last_ = -1;
  bool dead_ = false, stopped_ = false, notes_ = true;
  std::thread thread_;
};

// CLUSTER SLOTS of a cluster of two: the first has the slots up to `split`, the other the rest.
inline std::string two_nodes(std::uint16_t first, std::uint16_t second, int split = 8191) {
  const auto range = [](int from, int to, std::uint16_t port) {
    return "*3\r\n:" + std::to_string(from) + "\r\n:" + std::to_string(to) +
           "\r\n*4\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(port) + "\r\n$2\r\nid\r\n*0\r\n";
  };
  return "*2\r\n" + range(0, split, first) + range(split + 1, 16383, second);
}

}  // namespace weir::kv::testing
