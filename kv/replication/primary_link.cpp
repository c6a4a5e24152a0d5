#include "kv/replication/primary_link.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "kv/call/server_parts.hpp"
#include "kv/core/kept.hpp"
#include "kv/endpoints/dialler.hpp"
#include "kv/endpoints/listeners.hpp"
#include "kv/replication/replication.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::repl {

namespace {

constexpr std::int64_t link_turn_us = 500;
constexpr std::int64_t rest_us = 5000;
constexpr std::string_view already_primary = "PSYNC FAILOVER can't be sent to a master.";
constexpr std::int64_t longest_rest_s = 60;
constexpr std::size_t kept_capacity = std::size_t{64} << 10;

std::uint16_t announced_port(const ServerParts& server) {
  if (server.settings.replica_announce_port != 0)
    return static_cast<std::uint16_t>(server.settings.replica_announce_port);
  return server.listeners.port_of_type(
      server.settings.tls_replication && server.settings.tls_port != 0 ? "tls" : "tcp");
}

}  // namespace

PrimaryLink::PrimaryLink(ServerParts& server, History& history, PrimaryAddress address)
    : Primary(std::move(address)),
      server_(server),
      history_(history),
      output_(server.blocks),
      work_timer_(server.io) {
  down_since_ms_ = server.steady_ms;
}

void follow_primary(ServerParts& server, PrimaryAddress address) {
  Replication& replication = *server.replication;
  replication.follow(std::make_unique<PrimaryLink>(server, replication.history(), std::move(address)));
}

void follow_configured_primary(ServerParts& server) {
  const std::string& primary = server.settings.replicaof;
  const std::size_t blank = primary.rfind(' ');
  if (blank == std::string::npos) return;
  const std::int64_t port = parse_int(std::string_view(primary).substr(blank + 1)).value_or(0);
  follow_primary(server, {primary.substr(0, blank), static_cast<std::uint16_t>(port)});
}

PrimaryLink::~PrimaryLink() { close(); }

std::int64_t PrimaryLink::read_position() const {
  const bool of_history = stage_ == Stage::follows;
  return history_.end() + (of_history ? static_cast<std::int64_t>(waiting().size()) : 0);
}

void PrimaryLink::dial() {
  stage_ = Stage::dials;
  heard_ms_ = server_.steady_ms;
  auto begun = server_.dialler.dial_primary(address_.host, address_.port,
                                            [this](Opened<std::unique_ptr<Connection>> outcome) {
                                              server_.handle([&] { dialled(std::move(outcome)); });
                                            });
  if (!begun) return break_off(begun.error());
  dialling_ = std::move(*begun);
}

void PrimaryLink::dialled(Opened<std::unique_ptr<Connection>> outcome) {
  if (!outcome) return break_off("cannot connect: " + outcome.error());
  stage_ = Stage::greets;
  heard_ms_ = server_.steady_ms;
  connection_ = std::move(*outcome);
  const Settings& settings = server_.settings;
  greeting_.emplace(Greeting::Self{settings.masteruser, settings.masterauth, announced_port(server_),
                                   settings.replica_announce_ip,
                                   history_.kept() ? history_.id() : std::string(), history_.end(),
                                   server_.replication->failover().in_progress() && !took_over_});
  connection_->start(*this);
  send(greeting_->say());
}

void PrimaryLink::send(std::string_view bytes) {
  if (connection_ == nullptr || bytes.empty()) return;
  output_.append(bytes);
  connection_->flush();
}

std::size_t PrimaryLink::appetite() const {
  // One request or transaction may be larger; then the applier waits for the rest of it.
  const bool waits_for_more = stage_ == Stage::follows && !works_soon_;
  return waiting().size() < most_waiting || waits_for_more ? SIZE_MAX : 0;
}

void PrimaryLink::received(std::span<const char> bytes) {
  server_.refresh_time();
  if (stage_ != Stage::greets) heard_ms_ = server_.steady_ms;  // a greeting counts by complete lines
  server_.stats.bytes_in += bytes.size();
  input_.append(bytes.data(), bytes.size());
  if (!works_soon_) work();
}

void PrimaryLink::lost(std::string_view why) {
  lost_answer_ |= greeting_ && greeting_->asked_to_take_over();
  break_off("the link is lost: " + std::string(why));
}

void PrimaryLink::done_with(std::size_t bytes) {
  done_ += bytes;
  // Drop at least half, or the rest would be moved again and again.
  if (done_ < input_.size() && done_ < std::max(kept_capacity, input_.size() / 2)) return;
  input_.erase(0, done_);
  done_ = 0;
  if (input_.empty() && input_.capacity() > most_waiting) input_.shrink_to_fit();
}

void PrimaryLink::work_soon(std::int64_t us) {
  works_soon_ = true;
  work_timer_.expires_after(std::chrono::microseconds(us));
  work_timer_.async_wait([this, here = std::weak_ptr(here_)](const std::error_code& cancelled) {
    if (cancelled || here.expired()) return;
    works_soon_ = false;
    server_.handle([this] {
      work();
      if (connection_ != nullptr) connection_->flush();  // it may have an appetite again
    });
  });
}

void PrimaryLink::work() {
  if (stage_ == Stage::greets) greet();
  if (stage_ == Stage::loads) return load();
  if (stage_ == Stage::follows) apply();
}

void PrimaryLink::greet() {
  while (stage_ == Stage::greets) {
    const std::size_t end = waiting().find('\n');
    if (end == std::string_view::npos) {
      if (waiting().size() > Greeting::longest_line) break_off("its greeting makes no sense");
      return;
    }
    std::string line(waiting().substr(0, end));
    if (line.ends_with('\r')) line.pop_back();
    done_with(end + 1);
    if (greeting_->may_wait() || !line.empty()) heard_ms_ = server_.steady_ms;
    switch (greeting_->take(line)) {
      case Greeting::Outcome::goes_on:
        send(greeting_->say());
        if (greeting_->asked_to_take_over()) server_.replication->failover().asked();
        break;
      case Greeting::Outcome::refused:
        return refused();
      case Greeting::Outcome::full:
        server_.replication->failover().accepted();
        return begin_loading();
      case Greeting::Outcome::continues:
        server_.replication->failover().accepted();
        server_.log(LogLevel::notice, "the primary goes on where it was left");
        if (greeting_->history() != history_.id()) {
          history_.rename(greeting_->history());
          server_.replication->replicas().close_all();  // they connect again and learn the new name
        }
        return begin_following();
    }
  }
}

void PrimaryLink::refused() {
  const std::string why = greeting_->error();
  const bool was_to_take_over = greeting_->asked_to_take_over();
  // It has taken over already, and that answer was lost.
  took_over_ = was_to_take_over && lost_answer_ && why.ends_with(already_primary);
  break_off(why);
  if (was_to_take_over && !took_over_) server_.replication->failover().refused(why);
}

void PrimaryLink::begin_loading() {
  stage_ = Stage::loads;
  frame_ = {};
  server_.log(LogLevel::notice, "the primary sends a snapshot");
  load_ = std::make_unique<SnapshotLoad>(
      server_, [this](char* into, std::size_t most) { return take_content(into, most); });
}

std::size_t PrimaryLink::take_content(char* into, std::size_t most) {
  while (!frame_.ended() && !frame_.failed()) {
    // Offer no more than fits, because bytes that the frame takes are dropped from the input.
    const std::size_t behind = frame_.size() != 0 ? 0 : SnapshotFrame::mark_size - 1;
    const std::string_view offered = waiting().substr(0, most + behind);
    const SnapshotFrame::Taken taken = frame_.take(offered);
    const std::size_t some = taken.content.copy(into, most);
    done_with(taken.bytes);
    if (some > 0) return some;
    if (taken.bytes == 0) break;
  }
  return 0;
}

void PrimaryLink::load() {
  if (server_.script_suspended) return work_soon(rest_us);
  switch (load_->take_turn(frame_.ended() || frame_.failed())) {
    case SnapshotLoad::Outcome::more:
      return work_soon(0);
    case SnapshotLoad::Outcome::hungry:
      if (frame_.ended() || frame_.failed()) work_soon(0);  // to learn that no more bytes come
      return;
    case SnapshotLoad::Outcome::failed:
      rest_longer();
      return break_off("its snapshot does not load: " + load_->error());
    case SnapshotLoad::Outcome::loaded:
      break;
  }
  // The end mark may still be on its way.
  char more = 0;
  if (take_content(&more, 1) != 0 || frame_.failed()) return break_off("its snapshot goes on behind its end");
  if (frame_.ended()) loaded();
}

void PrimaryLink::loaded() {
  Replicas& replicas = server_.replication->replicas();
  replicas.close_all();
  if (const std::string problem = load_->put_in_place(); !problem.empty()) return break_off(problem);
  history_.adopt(greeting_->history(), greeting_->position());
  synced_ = {};
  history_.database = load_->stream_database();
  server_.log(LogLevel::notice, "loaded " + std::to_string(load_->keys()) + " keys from the primary");
  load_.reset();
  begin_following();
  confirm();
  if (server_.blocking.ready()) server_.blocking.serve();
}

void PrimaryLink::begin_following() {
  stage_ = Stage::follows;
  last_problem_.clear();
  rest_s_ = 0;
  greeting_.reset();
  applier_ = std::make_unique<Applier>(server_, history_.database);
  if (!waiting().empty()) work_soon(0);
}

// While it is not, applied changes would pile up in memory without limit.
bool PrimaryLink::log_is_kept() const { return aof::refusal(*server_.append_only).empty(); }

void PrimaryLink::apply() {
  if (server_.script_suspended || !log_is_kept()) return work_soon(rest_us);
  const double most_cycles = link_turn_us * server_.cycle_rate.per_us();
  const std::uint64_t began = cycles_now();
  while (!waiting().empty()) {
    switch (applier_->take(waiting())) {
      case Applier::Outcome::applied:
        history_.append(waiting().substr(0, applier_->taken()));
        history_.database = applier_->database();
        done_with(applier_->taken());
        break;
      case Applier::Outcome::looked_at:
        break;
      case Applier::Outcome::incomplete:
        if (applier_->was_asked()) confirm();
        return;
      case Applier::Outcome::failed:
        return break_off(applier_->error());
    }
    if (server_.blocking.ready()) server_.blocking.serve();
    if (static_cast<double>(cycles_now() - began) > most_cycles) {
      work_soon(0);
      break;
    }
  }
  if (applier_->was_asked()) confirm();
}

void PrimaryLink::confirm() {
  std::string request;
  if (const auto log = aof::positions(*server_.append_only)) {
    if (log->has_base) synced_.note(history_.end(), log->written, log->synced);
    append_request(request,
                   std::array<RequestWord, 5>{"REPLCONF", "ACK", history_.end(), "FACK", synced_.so_far()});
  } else {
    append_request(request, std::array<RequestWord, 3>{"REPLCONF", "ACK", history_.end()});
  }
  send(request);
}

void PrimaryLink::break_off(const std::string& why) {
  if (why != last_problem_) {
    server_.log(LogLevel::warning,
                "primary " + address_.host + ':' + std::to_string(address_.port) + ": " + why);
    last_problem_ = why;
  }
  if (stage_ == Stage::follows) down_since_ms_ = server_.steady_ms;
  close();
}

void PrimaryLink::close() {
  stage_ = Stage::waits;
  heard_ms_ = server_.steady_ms;
  dialling_.reset();
  if (connection_ != nullptr) {
    connection_->close();
    closed_.push_back(std::move(connection_));  // it may be the caller
  }
  output_.clear();
  input_.clear();
  done_ = 0;
  greeting_.reset();
  load_.reset();
  applier_.reset();
}

// A snapshot that cannot be read cannot be read a second later, either, and costs both servers all of it.
void PrimaryLink::rest_longer() {
  rest_s_ = std::clamp<std::int64_t>(rest_s_ * 2, 1, longest_rest_s);
  dials_at_ms_ = server_.steady_ms + rest_s_ * 1000;
  server_.log(LogLevel::notice, "the next snapshot is asked for in " + std::to_string(rest_s_) + " s");
}

void PrimaryLink::disconnect(const std::string& why) {
  if (connection_ != nullptr) break_off(why);
}

bool PrimaryLink::finished() const {
  return connection_ == nullptr &&
         std::ranges::all_of(closed_, [](const auto& connection) { return connection->finished(); });
}

void PrimaryLink::look_at_clock() {
  std::erase_if(closed_, [](const auto& connection) { return connection->finished(); });
  if (stage_ == Stage::waits) {
    if (log_is_kept() && server_.steady_ms >= dials_at_ms_) dial();
    return;
  }
  if (server_.steady_ms - heard_ms_ > server_.settings.repl_timeout_s * 1000) {
    const bool connects = stage_ == Stage::dials || stage_ == Stage::greets;
    return break_off(std::string(connects ? "Timeout connecting to the MASTER: " : "") +
                     "nothing was heard of it for repl-timeout");
  }
  if (stage_ == Stage::follows) confirm();
  if (stage_ == Stage::loads) send("\n");  // shows the primary that this server is alive
}

}  // namespace weir::kv::repl
