// The connection manager's ends as tests hold them: a link with a clock that the test moves, and a port that
// keeps what is sent.
#pragma once

#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "verbs/cm/packet_carrier.hpp"

namespace weir::cm {

constexpr IpBytes ip(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, last}; }
inline constexpr IpBytes ours = ip(1), theirs = ip(2), stranger = ip(3);
inline constexpr std::uint32_t our_id = 0x01000007, their_id = 0x02000009;

class Neighbour final : public link::Neighbour {
 public:
  link::Slot slot() const override { return 3; }
  pid_t pid() const override { return 0; }
  std::uint64_t incarnation() const override { return 0; }
  const link::Greeting& greeting() const override { return greeting_; }
  void close_greeting_fds() override {}
  bool alive() const override { return true; }
  link::Result<void> send(std::uint16_t kind, std::span<const std::byte> body,
                          std::span<const int>) override {
    sent.emplace_back(kind, std::vector(body.begin(), body.end()));
    return {};
  }
  link::Result<link::Message> call(std::uint16_t, std::span<const std::byte>, std::chrono::milliseconds,
                                   std::span<const int>) override {
    return link::Message{};
  }
  link::Result<void> reply(const link::Message&, std::span<const std::byte>, std::span<const int>) override {
    return {};
  }

  std::vector<std::pair<std::uint16_t, std::vector<std::byte>>> sent;

 private:
  const link::Greeting greeting_;
};

class SteppedLink final : public link::SameHostLink {
 public:
  explicit SteppedLink(std::string directory = {}) : directory_(std::move(directory)) {}
  link::Slot slot() const override { return 1; }
  const std::string& directory() const override { return directory_; }
  int number_descriptor() const override { return -1; }
  std::vector<link::Slot> occupied() const override { return {1, 3}; }
  bool is_free(link::Slot slot) const override { return slot == 3 && free; }
  link::Result<link::NeighbourPtr> connect(link::Slot, std::chrono::milliseconds) override { return other; }
  void connect_async(link::Slot to, std::chrono::milliseconds,
                     std::function<void(link::Result<link::NeighbourPtr>)> done) override {
    EXPECT_EQ(to, 3);
    if (no_way)
      done(std::unexpected(link::Error{*no_way, "the test says so"}));
    else
      done(link::NeighbourPtr(other));
  }
  link::NeighbourPtr connected(link::Slot) const override {
    return is_connected ? link::NeighbourPtr(other) : nullptr;
  }
  void on_restored(link::RestoredHandler) override {}
  void on_message(std::uint16_t kind, link::MessageHandler handler) override {
    passed_on_kind = kind;
    passed_on = std::move(handler);
  }
  void on_gone(link::GoneHandler) override {}
  link::Result<void> watch(int descriptor, link::FdHandler handler) override {
    watched[descriptor] = std::move(handler);
    return {};
  }
  void unwatch(int descriptor) override { watched.erase(descriptor); }
  void heed(int, bool) override {}
  TimerId at(link::Clock::time_point when, std::function<void()> run) override {
    timers.push_back(
        {std::chrono::round<std::chrono::milliseconds>(when - link::Clock::now()), std::move(run)});
    return timers.size();
  }
  bool cancel(TimerId) override { return true; }
  void post(std::function<void()> run) override { run(); }
  bool on_progress_thread() const override { return true; }
  void withdraw() override {}

  // The timer that was set last, and how long it was to run.
  std::chrono::milliseconds run_timer() {
    const auto next = std::move(timers.front());
    timers.pop_front();
    next.second();
    return next.first;
  }

  std::shared_ptr<Neighbour> other = std::make_shared<Neighbour>();
  bool is_connected = false;
  std::optional<std::errc> no_way;  // to it
  bool free = true;                 // its slot, where there is no way to it
  std::map<int, link::FdHandler> watched;
  std::deque<std::pair<std::chrono::milliseconds, std::function<void()>>> timers;
  std::uint16_t passed_on_kind = 0;
  link::MessageHandler passed_on;

 private:
  const std::string directory_;
};

class Port final : public verbs::ManagementPort {
 public:
  link::Result<void> open_port() override { return {}; }
  void on_management(Handler handler) override { arrive = std::move(handler); }
  void send_management(const verbs::ManagementRoute& to, std::span<const std::byte> mad) override {
    EXPECT_EQ(to.source, own);
    sent.push_back({to.destination, to.process, {mad.begin(), mad.end()}});
  }
  std::unique_ptr<link::PortProbe> ask(const verbs::ManagementRoute& to,
                                       std::span<const std::byte> mad) override {
    return on_ask(to, mad);
  }
  bool is_ours(const verbs::GidBytes& address) override { return address != stranger; }
  // From another user's process, by its number.
  void listens(std::uint32_t) override {}
  void listens_no_more(std::uint32_t) override {}
  bool serve(const std::string& service) override { return services.emplace(service, serving).second; }
  std::optional<unsigned> other_user_serving(const std::string& service) override {
    return services.contains(service) ? std::optional(user_of_services) : std::nullopt;
  }
  void stop_serving(const std::string& service) override { services.erase(service); }
  bool find_server(const std::string& service, std::function<void(std::uint64_t)> found) override {
    const auto served = services.find(service);
    if (served == services.end()) return false;
    found(served->second);
    return true;
  }
  void on_process_gone(std::function<void(std::uint64_t)> handler) override { end = std::move(handler); }
  bool is_occupied(link::Slot) override { return occupied; }
  bool may_dial(link::Slot slot) override { return dials == 0 || dialled[slot]++ < dials; }
  void count_dropped(rnic::Dropped why) override { ++dropped[why]; }
  bool leads_to(const verbs::GidBytes&) override { return true; }
  std::uint8_t path_mtu(const verbs::GidBytes&) override { return IBV_MTU_1024; }
  std::uint32_t scope_of(const verbs::GidBytes& at) override { return at[0] == 0xfe ? 7 : 0; }

  struct Sent {
    IpBytes to;
    std::uint64_t process = 0;
    std::vector<std::byte> mad;
  };
  IpBytes own = ours;
  std::vector<Sent> sent;
  bool occupied = true;  // every slot
  int dials = 0;         // that each slot may get; 0: any number
  std::map<link::Slot, int> dialled;
  std::map<rnic::Dropped, int> dropped;
  std::function<std::unique_ptr<link::PortProbe>(const verbs::ManagementRoute&, std::span<const std::byte>)>
      on_ask;
  std::map<std::string, std::uint64_t> services;
  std::uint64_t serving = 0;
  unsigned user_of_services = 64'101;
  Handler arrive;
  std::function<void(std::uint64_t)> end;
};

inline CmMessage request(MessageType type = MessageType::req) {
  CmMessage message;
  message.type = type;
  message.local_id = our_id;
  message.port_space = type == MessageType::req ? RDMA_PS_TCP : RDMA_PS_UDP;
  message.source.ip = ours;
  message.destination.ip = theirs;
  message.destination.port = 7471;
  message.qpn = 0x123;
  return message;
}

inline CmMessage answer(MessageType type, std::uint32_t to = our_id) {
  CmMessage message;
  message.type = type;
  message.local_id = type == MessageType::sidr_rep ? 0 : their_id;
  message.remote_id = to;
  return message;
}

}  // namespace weir::cm
