#include "kv/server/client.hpp"

#include <algorithm>
#include <cstring>

#include "kv/server/blocking.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {
// A client that sends requests and does not read its replies is not executed further once so much waits for
// it; its requests still pile up (a peer may have to finish writing before it reads), within the query
// buffer's limit.
constexpr std::size_t stall_above = 8u << 20;
}  // namespace

Client::Client(Server& server, std::uint64_t id, std::unique_ptr<Connection> connection)
    : output(server.blocks), reply(output), server_(server), id_(id), connection_(std::move(connection)) {}

Client::~Client() { output.clear(); }

void Client::received(std::span<const char> bytes) {
  std::string_view input(bytes.data(), bytes.size());
  server_.refresh_time();
  active_ms = server_.now_ms;
  server_.stats.bytes_in += input.size();
  if (std::span<char> place = parser_.wanted(); !place.empty()) {
    const std::size_t n = std::min(place.size(), input.size());
    std::memcpy(place.data(), input.data(), n);
    parser_.filled(n);
    input.remove_prefix(n);
    if (refuse_too_much() || n < place.size()) return;
  }
  take(input);
}

std::span<char> Client::wanted() { return parser_.wanted(); }

void Client::filled(std::size_t bytes) {
  server_.stats.bytes_in += bytes;
  parser_.filled(bytes);
  if (refuse_too_much() || !parser_.wanted().empty()) return;
  server_.refresh_time();
  active_ms = server_.now_ms;
  take({});
}

// Runs what is complete in the pending bytes and `input`, and keeps the rest.
void Client::take(std::string_view input) {
  if (closing) return;
  if (pending_.empty()) {
    const std::size_t used = process(input);
    if (!closing && used < input.size()) {
      const std::size_t kept = takes_requests() ? parser_.kept() : input.size() - used;
      pending_.assign(input.substr(used, kept));
    }
  } else {
    pending_.append(input);
    resume();
  }
  refuse_too_much();
}

// Whether more is held of its requests than client-query-buffer-limit allows; then it ends.
bool Client::refuse_too_much() {
  if (closing) return true;
  if (pending_bytes() <= static_cast<std::size_t>(server_.settings.client_query_buffer_limit)) return false;
  server_.log(LogLevel::warning,
              "closing client " + std::to_string(id_) + ": its requests reached client-query-buffer-limit");
  close();
  return true;
}

void Client::resume() {
  if (processing_) return;
  paused_ = false;
  const std::size_t used = process(pending_);
  if (closing) return;
  const std::size_t kept =
      takes_requests() ? std::min(parser_.kept(), pending_.size() - used) : pending_.size() - used;
  pending_.erase(0, used);
  pending_.resize(kept);
  if (pending_.empty() && pending_.capacity() > 64 * 1024) pending_ = {};
}

// Executes every complete request at the front of `input`; returns how many bytes they took.
std::size_t Client::process(std::string_view input) {
  std::size_t used = 0;
  processing_ = true;
  const std::size_t errors_before = reply.errors;
  while (takes_requests() && used < input.size()) {
    const RequestParser::Limits limits{server_.settings.proto_max_bulk_len, authenticated};
    const auto status = parser_.parse(input.substr(used), limits);
    if (status == RequestParser::Status::incomplete) break;
    if (status == RequestParser::Status::failed) {
      refuse(parser_.error());
      break;
    }
    unexecuted_ = input.size() - used;
    if (!parser_.arguments().empty() && !server_.execute(*this, parser_.arguments())) {
      paused_ = true;
      break;
    }
    used += parser_.consumed();
    parser_.next();
    if (server_.limit_output(*this)) break;
    if (output.size() > stall_above) stalled_ = true;
  }
  processing_ = false;
  server_.stats.error_replies += reply.errors - errors_before;
  if (!output.empty() || close_after_reply) server_.will_flush(*this);
  return used;
}

void Client::set_replies(Replies replies) {
  replies_ = replies;
  const bool silent = replies == Replies::off || replies == Replies::skipping;
  silent ? reply.mute() : reply.unmute();
}

void Client::end_of_command() {
  if (replies_ == Replies::on || blocked != nullptr) return;
  reply.drop_lost();
  if (replies_ == Replies::skipping) return set_replies(Replies::on);
  if (replies_ == Replies::skip_next) set_replies(Replies::skipping);
}

void Client::refuse(const std::string& protocol_error) {
  server_.log(LogLevel::verbose,
              "client " + std::to_string(id_) + " (" + connection_->peer_address() + "): " + protocol_error);
  reply.error("ERR " + protocol_error);
  close_after_reply = true;
  parser_.next();
}

void Client::drained() {
  over_soft_limit_since_ms = 0;
  if (close_after_reply) return close();
  if (stalled_) {
    stalled_ = false;
    resume();
  }
}

void Client::lost(std::string_view why) {
  if (closing) return;
  if (server_.settings.loglevel == 0) {
    server_.log(LogLevel::debug, "client " + std::to_string(id_) + ": " + std::string(why));
  }
  close();
}

void Client::close() {
  if (closing) return;
  closing = true;
  connection_->close();
  server_.forget(*this);
}

}  // namespace weir::kv
