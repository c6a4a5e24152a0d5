#include "kv/replication/applier.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kv/call/server_parts.hpp"
#include "kv/clients/access_control.hpp"
#include "kv/clients/unconnected_client.hpp"
#include "kv/effects/effects.hpp"
#include "kv/store/nothing_expires.hpp"

namespace weir::kv::repl {

namespace {

using namespace std::string_view_literals;

bool belongs_in_a_stream(const Command& command) {
  if (command.run == nullptr) return false;
  if (command.has(flag::write)) return true;
  constexpr std::array others{"select"sv, "publish"sv, "spublish"sv, "pfcount"sv};
  return std::ranges::find(others, command.name) != others.end();
}

RequestFrame::Limits frame_limits(const Settings& settings) {
  return {settings.proto_max_bulk_len, static_cast<std::size_t>(settings.client_query_buffer_limit)};
}

// These requests change nothing, so there is nothing to run.
bool says_nothing(std::string_view name) { return is_word(name, "ping") || is_word(name, "replconf"); }

}  // namespace

Applier::Applier(ServerParts& server, int database)
    : server_(server), client_(make_unconnected_client(server, server, "primary")) {
  server.access.reset(*client_);
  client_->let_in();  // an administrator chose the primary
  client_->db = std::clamp(database, 0, static_cast<int>(server.settings.databases) - 1);
}

Applier::~Applier() = default;

bool Applier::fail(std::string why) {
  error_ = std::move(why);
  return false;
}

// The frame has checked that the request is complete.
bool Applier::parse(std::string_view request) {
  parser_.next();
  const RequestParser::Limits limits{server_.settings.proto_max_bulk_len, true};
  if (parser_.parse(request, limits) != RequestParser::Status::complete) return fail("no request");
  return true;
}

Applier::Outcome Applier::take(std::string_view input) {
  const RequestFrame::Limits limits = frame_limits(server_.settings);
  switch (frame_.scan(input.substr(looked_at_), limits)) {
    case RequestFrame::Status::incomplete:
      if (input.size() <= limits.request) return Outcome::incomplete;
      fail("a transaction is larger than client-query-buffer-limit");
      return Outcome::failed;
    case RequestFrame::Status::failed:
      fail("what it sends is no request");
      return Outcome::failed;
    case RequestFrame::Status::whole:
      break;
  }
  const std::size_t end = looked_at_ + frame_.size();
  frame_.next();
  return take_request(input, end);
}

Applier::Outcome Applier::take_request(std::string_view input, std::size_t end) {
  const std::string_view request = input.substr(looked_at_, end - looked_at_);
  if (!parse(request)) return Outcome::failed;
  const Arguments words = parser_.arguments();
  if (words.size() == 1 && is_word(words[0].text, "MULTI")) {
    if (std::exchange(in_transaction_, true)) return fail("MULTI in a transaction"), Outcome::failed;
  } else if (words.size() == 1 && is_word(words[0].text, "EXEC")) {
    if (!std::exchange(in_transaction_, false)) return fail("EXEC without MULTI"), Outcome::failed;
    if (!run_transaction(input.substr(0, end))) return Outcome::failed;
  } else if (in_transaction_ ? !is_known(words) : !run(words)) {
    return Outcome::failed;
  }
  if (in_transaction_) {
    looked_at_ = end;
    return Outcome::looked_at;
  }
  looked_at_ = 0;
  taken_ = end;
  return Outcome::applied;
}

// Runs each request of the transaction, now that its EXEC has arrived.
bool Applier::run_transaction(std::string_view input) {
  const Effects::Together in_one_piece(server_.effects);
  while (!input.empty()) {
    RequestFrame frame;
    if (frame.scan(input, frame_limits(server_.settings)) != RequestFrame::Status::whole)
      return fail("no request");
    if (!parse(input.substr(0, frame.size()))) return false;
    input.remove_prefix(frame.size());
    const Arguments words = parser_.arguments();
    const bool bracket =
        words.size() == 1 && (is_word(words[0].text, "MULTI") || is_word(words[0].text, "EXEC"));
    if (!bracket && !run(words)) return false;
  }
  return true;
}

bool Applier::is_known(Arguments words) {
  if (words.empty() || says_nothing(words[0].text)) return true;
  const Command* const command = find_command(words);
  if (command != nullptr && belongs_in_a_stream(*command) && command->takes(words.size())) return true;
  return fail("it sends '" + std::string(up_to_zero(words[0].text).substr(0, 64)) +
              "', which this server does not know as a change of data");
}

bool Applier::run(Arguments words) {
  if (!is_known(words)) return false;
  if (words.empty()) return true;
  if (says_nothing(words[0].text)) {
    was_asked_ = was_asked_ || (words.size() > 1 && is_word(words[1].text, "GETACK"));
    return true;
  }
  const Command* const command = find_command(words);
  const NothingExpires while_it_runs(server_.databases);
  const std::uint64_t errors = client_->reply.errors;
  server_.run(*client_, *command, words);
  client_->reply.drop_lost();
  if (client_->reply.errors != errors)
    server_.log(LogLevel::warning, "a change that the primary sent failed here (" + command->full_name() +
                                       ": " + client_->reply.last_code + "): the data may differ");
  return true;
}

}  // namespace weir::kv::repl
