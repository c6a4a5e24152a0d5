#include "kv/migration/migration.hpp"

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <utility>

#include "kv/call/call.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/client.hpp"
#include "kv/core/keys_under_way.hpp"
#include "kv/effects/effects.hpp"
#include "kv/rdb/dump_payload.hpp"
#include "kv/rdb/value_encoder.hpp"

namespace weir::kv::migration {

namespace {

std::string as_error_of_target(std::string_view line) {
  return "ERR Target instance replied with error: " + std::string(line.substr(1));
}

}  // namespace

Migration::Migration(ServerParts& server, Client& client, Links& links, Order order, Done done)
    : server_(server),
      client_(client),
      links_(links),
      order_(std::move(order)),
      done_(std::move(done)),
      db_(client.db) {}

void Migration::stop() {
  if (std::exchange(over_, true)) return;
  drop_link();
  if (!std::exchange(claimed_, false)) return;
  for (const std::string& key : order_.keys) server_.keys_under_way.end(db_, key);
}

void Migration::drop_link() {
  if (link_ == nullptr) return;
  link_->close();  // it may still owe answers
  links_.give_back(std::move(link_));
}

bool Migration::claim() {
  if (order_.copy) return true;
  for (std::size_t i = 0; i < order_.keys.size(); ++i) {
    if (server_.keys_under_way.begin(db_, order_.keys[i])) continue;
    for (std::size_t j = 0; j < i; ++j) server_.keys_under_way.end(db_, order_.keys[j]);
    return false;
  }
  claimed_ = true;
  return true;
}

void Migration::start() {
  moved_ms_ = server_.steady_ms;
  stage_ = Stage::connects;
  link_ = links_.take_link(login());
  link_->belongs_to(*this);
  link_was_kept_ = link_->selected_db.has_value();
  begin_round({order_.keys.begin(), order_.keys.end()});
  if (!link_was_kept_) return link_->dial();
  select();
}

void Migration::begin_round(std::deque<std::string> keys) {
  ++round_;
  to_send_ = std::move(keys);
}

void Migration::link_ready(TargetLink&) {
  moved_ms_ = server_.steady_ms;
  order_.password ? log_in() : select();
}

void Migration::log_in() {
  stage_ = Stage::logs_in;
  std::vector<RequestWord> words{"AUTH"};
  if (!order_.user.empty()) words.emplace_back(order_.user);
  words.emplace_back(*order_.password);
  std::string request;
  append_request(request, words);
  link_->append(request);
  link_->flush();
}

// Keys follow only when that has succeeded: they must not get into another database.
void Migration::select() {
  if (link_->selected_db == order_.target_db) {
    stage_ = Stage::moves;
    return send_some();
  }
  stage_ = Stage::selects;
  std::string request;
  append_request(request, std::array<RequestWord, 2>{"SELECT", order_.target_db});
  link_->append(request);
  link_->flush();
}

void Migration::line_came(TargetLink& link, std::string_view line) {
  moved_ms_ = server_.steady_ms;
  any_answer_ = true;
  const bool refused = line.starts_with('-');
  if (stage_ == Stage::logs_in || stage_ == Stage::selects) {
    if (refused) return fail(as_error_of_target(line));
    if (stage_ == Stage::logs_in) return select();
    link.selected_db = order_.target_db;
    stage_ = Stage::moves;
    return send_some();
  }
  if (awaited_.empty()) return link_failed(link, TargetLink::Failure::reading);  // nobody asked
  auto [key, dialect] = std::move(awaited_.front());
  awaited_.pop_front();
  if (refused && is_of_other_dialect(key, dialect, line)) {
    link.dialect = rdb::Dialect::valkey;
    to_send_.push_back(std::move(key));
    return send_some();
  }
  if (!refused) {
    taken_.push_back(std::move(key));
  } else if (error_.empty()) {
    error_ = as_error_of_target(line);
  }
  settle();
}

void Migration::all_sent(TargetLink&) {
  moved_ms_ = server_.steady_ms;
  // Not now: a peer that takes everything at once must not keep the server from its other clients.
  if (stage_ != Stage::moves || to_send_.empty() || std::exchange(sends_soon_, true)) return;
  asio::post(server_.io, [this, &server = server_, here = std::weak_ptr(here_)] {
    if (here.expired() || over_) return;
    sends_soon_ = false;
    server.handle([this] { send_some(); });
  });
}

void Migration::send_some() {
  if (link_ == nullptr) return;
  while (!to_send_.empty() && link_->unsent() < most_ahead) {
    std::string key = std::move(to_send_.front());
    to_send_.pop_front();
    if (send(key)) awaited_.push_back({std::move(key), link_->dialect});
  }
  if (awaited_.empty()) return settle();  // all have expired
  unsent_ = link_->unsent();
  link_->flush();
}

// False: there is nothing to send.
bool Migration::send(const std::string& key) {
  const Record* record = server_.databases[static_cast<std::size_t>(db_)]->peek(key, server_.now_ms);
  const bool again = round_ > 1;
  if (record == nullptr && !again) return false;
  if (claimed_) server_.keys_under_way.copied(db_, key);
  std::string request;
  if (record == nullptr) {
    append_request(request, std::array<RequestWord, 2>{"DEL", key});
    link_->append(request);
    return true;
  }
  const bool replaces = order_.replace || again;
  const std::int64_t ttl = record->expires_at_ms == Record::never
                               ? 0
                               : std::max<std::int64_t>(1, record->expires_at_ms - server_.now_ms);
  const std::string payload = rdb::dump(record->value, link_->dialect);
  append_request_head(request, replaces ? 5 : 4);
  for (const RequestWord word : {RequestWord("RESTORE"), RequestWord(key), RequestWord(ttl)})
    append_request_word(request, word);
  request.append("$").append(std::to_string(payload.size())).append("\r\n");
  link_->append(request);
  link_->append(payload);
  link_->append(replaces ? "\r\n$7\r\nREPLACE\r\n" : "\r\n");
  return true;
}

// Whether the other server did not understand the form in which the key was sent, and there is another.
bool Migration::is_of_other_dialect(const std::string& key, rdb::Dialect sent, std::string_view line) const {
  if (sent != rdb::Dialect::redis || line.find("Bad data format") == line.npos) return false;
  const Record* record = server_.databases[static_cast<std::size_t>(db_)]->peek(key, server_.now_ms);
  return record != nullptr &&
         rdb::type_of(record->value, rdb::Dialect::valkey) == rdb::ValueType::hash_of_valkey;
}

bool Migration::data_may_change() const {
  return !server_.paused() && !server_.script_suspended && !server_.loading;
}

void Migration::settle() {
  if (!data_may_change()) return;
  while (!taken_.empty()) {
    const std::string key = std::move(taken_.front());
    taken_.pop_front();
    if (!claimed_) continue;  // COPY
    if (server_.keys_under_way.changed(db_, key)) {
      changed_.push_back(key);
    } else {
      delete_here(key);
      if (over_) return;  // somebody was told of that and closed the client
    }
  }
  if (server_.blocking.ready()) server_.blocking.serve();
  if (!to_send_.empty() || !awaited_.empty() || stage_ != Stage::moves) return;
  if (changed_.empty() || !error_.empty()) return finish();
  if (round_ == most_rounds)
    return fail("ERR a key changes too often: it stays here, and the target instance has it as it was");
  begin_round(std::exchange(changed_, {}));
  send_some();
}

// As the client's DEL, which is what the log and replicas get.
void Migration::delete_here(const std::string& key) {
  static const Command& del = *find_command("del");
  const std::array<Argument, 2> words{Argument{"DEL", nullptr}, Argument{key, nullptr}};
  const Call call{server_,       client_, del,           *server_.databases[static_cast<std::size_t>(db_)],
                  client_.reply, words,   server_.now_ms};
  Client* const served_before = std::exchange(server_.serving, &client_);
  const bool outer = std::exchange(server_.changes_data, true);
  {
    const Effects::Running running(server_.effects, db_, words);
    if (call.write(key) != nullptr) call.erase(key);
  }
  server_.changes_data = outer;
  server_.serving = served_before;
}

void Migration::link_failed(TargetLink& link, TargetLink::Failure failure) {
  link.close();
  drop_link();
  // The other server may have closed a kept link long ago: nothing has happened yet.
  if (link_was_kept_ && !any_answer_) {
    awaited_.clear();
    round_ = 0;
    return start();
  }
  if (failure == TargetLink::Failure::connecting)
    return fail("IOERR error or timeout connecting to the client");
  fail(failure == TargetLink::Failure::writing ? "IOERR error or timeout writing to target instance"
                                               : "IOERR error or timeout reading to target instance");
}

// What is not settled stays here.
void Migration::fail(std::string error) {
  if (error_.empty()) error_ = std::move(error);
  to_send_.clear();
  awaited_.clear();
  changed_.clear();
  stage_ = Stage::moves;
  drop_link();
  settle();
}

void Migration::finish() {
  if (link_ != nullptr) links_.give_back(std::move(link_));
  stop();
  done_(error_);
}

std::int64_t Migration::next_look_ms() const {
  constexpr std::int64_t soon_ms = 100;
  const bool soon = !taken_.empty() || (link_ != nullptr && link_->unsent() != 0);
  const std::int64_t deadline_ms = moved_ms_ + order_.timeout_ms;
  return soon ? std::min(deadline_ms, server_.steady_ms + soon_ms) : deadline_ms;
}

void Migration::look_at_clock() {
  if (over_) return;
  if (!taken_.empty() || link_ == nullptr) return settle();
  if (link_->unsent() < std::exchange(unsent_, link_->unsent())) moved_ms_ = server_.steady_ms;
  if (server_.steady_ms - moved_ms_ < order_.timeout_ms) return;
  any_answer_ = true;  // a second try would take as long
  link_failed(*link_, stage_ == Stage::connects ? TargetLink::Failure::connecting
                      : link_->unsent() != 0    ? TargetLink::Failure::writing
                                                : TargetLink::Failure::reading);
}

}  // namespace weir::kv::migration
