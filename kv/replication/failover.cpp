#include "kv/replication/failover.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kv/clients/client.hpp"
#include "kv/clients/client_pause.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"
#include "kv/replication/replicas.hpp"

namespace weir::kv::repl {

namespace {

using Clock = std::chrono::steady_clock;

std::string text_of(const PrimaryAddress& address) {
  return address.host + ':' + std::to_string(address.port);
}

PrimaryAddress address_of(const Client& replica) { return {replica_address(replica), replica.replica->port}; }

}  // namespace

Failover::Failover(ServerCommon& server, ServerWhole& whole, Replicas& replicas)
    : server_(server), whole_(whole), replicas_(replicas), timer_(server.io) {}

std::string_view Failover::stage_name() const {
  switch (stage_) {
    case Stage::none:
      return "no-failover";
    case Stage::waits_for_sync:
      return "waiting-for-sync";
    case Stage::in_progress:
      break;
  }
  return "failover-in-progress";
}

std::string_view Failover::begin(Order order, Role role) {
  if (under_way()) return "ERR FAILOVER already in progress.";
  if (replicas_.size() == 0) return "ERR FAILOVER requires connected replicas.";
  if (order.force && (!order.to || order.timeout_ms == 0))
    return "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
  if (order.to) {
    const auto& all = replicas_.all();
    const auto target = std::ranges::find(all, *order.to, [](const Client* one) { return address_of(*one); });
    if (target == all.end()) return "ERR FAILOVER target HOST and PORT is not a replica.";
    if ((*target)->replica->stage != Replica::Stage::online)
      return "ERR FAILOVER target replica is not online.";
  }
  order_ = std::move(order);
  role_ = std::move(role);
  stage_ = Stage::waits_for_sync;
  server_.log(LogLevel::notice, order_.to ? "failover to " + text_of(*order_.to) + " begins"
                                          : std::string("failover to any replica begins"));
  whole_.hold_writes(HeldFor::failover);
  replicas_.let_history_rest(true);
  until_.reset();
  if (order_.timeout_ms != 0) {
    // The clock ends earlier than the times that can be asked for.
    constexpr std::int64_t longest_ms = 365LL * 24 * 3'600'000;
    until_ = Clock::now() + std::chrono::milliseconds(std::min(order_.timeout_ms, longest_ms));
    look_after(*until_ - Clock::now());
  }
  return {};
}

void Failover::look_after(Clock::duration wait) {
  timer_.expires_after(wait);
  timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled || !under_way()) return;
    whole_.handle([this] { look(); });
  });
}

void Failover::replica_moved() {
  // Not within the replica's own request, which may be the caller.
  if (stage_ == Stage::waits_for_sync && ready_replica() != nullptr) look_after(Clock::duration::zero());
}

// A replica that has the whole history, if it may be the one to take over.
const Client* Failover::ready_replica() const {
  const auto& all = replicas_.all();
  const auto ready = std::ranges::find_if(all, [this](const Client* client) {
    const Replica& replica = *client->replica;
    if (replica.stage != Replica::Stage::online || replica.acknowledged != server_.history.end())
      return false;
    const PrimaryAddress address = address_of(*client);  // as a stranger reported it
    return order_.to ? address == *order_.to : PrimaryAddress::may_be_host(address.host);
  });
  return ready == all.end() ? nullptr : *ready;
}

void Failover::look() {
  if (stage_ == Stage::waits_for_sync) {
    if (const Client* replica = ready_replica()) {
      server_.log(LogLevel::notice, "the replica has everything: it is asked to take over");
      return hand_over(address_of(*replica));
    }
  }
  if (!until_) return;
  const auto left = *until_ - Clock::now();
  if (left > Clock::duration::zero()) return look_after(left);
  time_is_up();
}

void Failover::time_is_up() {
  if (stage_ == Stage::in_progress) {
    if (!asked_) call_off("the replica cannot be reached");
  } else if (order_.force) {
    server_.log(LogLevel::warning, "the replica lags still: time out exceeded, failing over.");
    hand_over(*order_.to);
  } else {
    call_off("no replica got everything in time");
  }
}

void Failover::hand_over(PrimaryAddress to) {
  stage_ = Stage::in_progress;
  asked_ = false;
  replicas_.let_history_rest(false);
  until_ = Clock::now() + std::chrono::seconds(server_.settings.repl_timeout_s);
  look_after(*until_ - Clock::now());
  role_.follow(std::move(to));
}

bool Failover::abort() {
  if (!under_way()) return false;
  call_off("a client called it off");
  return true;
}

void Failover::call_off(std::string_view why) {
  server_.log(LogLevel::warning,
              "the failover ends while " + std::string(stage_name()) + ": " + std::string(why));
  const bool follows = in_progress();
  const auto follow_nobody = role_.follow_nobody;
  end();
  if (follows) follow_nobody();
}

void Failover::accepted() {
  if (!in_progress()) return;
  server_.log(LogLevel::notice, "the replica has taken over");
  end();
}

void Failover::refused(std::string_view answer) {
  if (!in_progress()) return;
  call_off("Failover target rejected psync request: " + std::string(answer));
}

void Failover::end() {
  stage_ = Stage::none;
  timer_.cancel();
  replicas_.let_history_rest(false);
  whole_.let_writes(HeldFor::failover);
}

}  // namespace weir::kv::repl
