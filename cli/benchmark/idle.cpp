#include "cli/benchmark/idle.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "cli/client/reply_count.hpp"
#include "cli/client/request.hpp"

namespace weir::benchmark {
namespace {

using client::Error;
using client::ErrorKind;
using client::Result;

// Nothing is sent after the login, so of the received bytes only errors matter.
class IdleConnection final : public client::ConnectionEvents {
 public:
  IdleConnection(std::span<const std::byte> login, std::optional<Error>& error)
      : unsent_(login), error_(error) {}

  Result<void> connect(client::Reactor& reactor, const LoadPlan& plan) {
    auto connection = reactor.open(plan.endpoint, *this, plan.connect_limit);
    if (!connection) return std::unexpected(std::move(connection.error()));
    connection_ = std::move(*connection);
    writable();
    return {};
  }

  void received(std::span<const std::byte> bytes) override {
    if (auto replies = counter_.count(bytes); !replies)
      note(std::move(replies.error()));
    else if (counter_.errors())
      note({ErrorKind::refused, "Error from server: " + counter_.first_error()});
  }
  void writable() override {
    if (!unsent_.empty()) unsent_ = unsent_.subspan(connection_->write(unsent_, nullptr));
  }
  void ended(const Error& why) override { note({why.kind, "Error: " + why.what}); }

 private:
  void note(Error why) {
    if (!error_) error_ = std::move(why);
  }

  std::span<const std::byte> unsent_;
  std::optional<Error>& error_;  // the first error of any connection
  client::ReplyCounter counter_;
  std::unique_ptr<client::Connection> connection_;
};

}  // namespace

Result<void> hold_idle_connections(const LoadPlan& plan) {
  using Clock = std::chrono::steady_clock;
  constexpr client::Milliseconds interval{250};
  fmt::print("Creating {} idle connections and waiting forever (Ctrl+C when done)\n", plan.clients);
  std::fflush(stdout);
  std::string login;
  for (const auto& command : client::login_commands(plan.login)) client::append_request(login, command);
  auto reactor = client::Reactor::for_transport(plan.endpoint.transport);
  if (!reactor) return std::unexpected(std::move(reactor.error()));
  std::optional<Error> error;
  std::vector<std::unique_ptr<IdleConnection>> connections;
  auto next_line = Clock::now();
  while (!plan.stopped() && !error) {
    const bool all = connections.size() == plan.clients;
    if (!all) {
      connections.push_back(std::make_unique<IdleConnection>(std::as_bytes(std::span(login)), error));
      if (auto connected = connections.back()->connect(**reactor, plan); !connected) return connected;
    }
    (*reactor)->turn(all ? interval : client::Milliseconds{0});
    if (Clock::now() < next_line) continue;
    next_line = Clock::now() + interval;
    fmt::print("clients: {}\r", connections.size());
    std::fflush(stdout);
  }
  fmt::print("\n");
  std::fflush(stdout);
  if (error) return std::unexpected(std::move(*error));
  return {};
}

}  // namespace weir::benchmark
