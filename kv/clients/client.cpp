#include "kv/clients/client.hpp"

#include <utility>

#include "kv/clients/blocked_on.hpp"
#include "kv/clients/client_host.hpp"
#include "kv/clients/client_turns.hpp"
#include "kv/clients/tracking_mode.hpp"
#include "kv/core/clients.hpp"
#include "kv/core/gateway.hpp"
#include "kv/core/server_common.hpp"
#include "kv/counting/cycles.hpp"

namespace weir::kv {

namespace {
// If this much output waits for a client that does not read its replies, its requests are no longer executed.
// They still pile up, to `most_behind` bytes, because a peer may have to finish writing before it reads.
constexpr std::size_t stall_above = 8u << 20;
constexpr std::size_t most_behind = 8u << 20;
// A password and a name need far less. The parser has Redis's own limits on a request before AUTH.
constexpr ClientLimits of_strangers{
    .at_once = 16u << 10, .unsent = 16u << 10, .behind = 0, .query = 64u << 10};

bool owed_by_gateway(const ServerCommon& server, const Client& client) {
  return server.gateway != nullptr && server.gateway->owes(client);
}
}  // namespace

ClientLimits Client::limits() const {
  if (!authenticated()) return of_strangers;
  return {SIZE_MAX, stall_above, most_behind,
          static_cast<std::size_t>(server_.settings.client_query_buffer_limit)};
}

std::size_t Client::appetite() const {
  const ClientLimits limit = limits();
  const bool waits = behind() || (paused() && server_.gateway != nullptr);
  return waits && input_.pending_bytes() >= limit.behind ? 0 : limit.at_once;
}

std::size_t Client::memory() const {
  std::size_t bytes = sizeof(Client) + input_.memory() + output.size() + name.capacity() +
                      transaction.queued_bytes + transaction.watched_bytes + subscriptions.text_bytes;
  for (const TextSet* topics :
       {&subscriptions.channels, &subscriptions.patterns, &subscriptions.shard_channels})
    bytes += topics->capacity() * sizeof(std::string);
  if (blocked == nullptr) return bytes;
  for (const Bytes& word : blocked->words) bytes += sizeof word + word.heap_size();
  for (const BlockedOn::Place& place : blocked->places) bytes += sizeof place + place.key.size();
  return bytes;
}

void Client::refresh_time() const {
  if (!in_exec) server_.refresh_time();
}

void Client::become_stranger() {
  if (lacks_.password != 0) return;
  lacks_.password = server_.strangers.enter(*this, Strangers::Lacks::password, connection_->peer_address(),
                                            server_.steady_ms);
}

void Client::let_in() {
  Strangers& all = server_.strangers;
  if (lacks_.password != 0) all.leave(Strangers::Lacks::password, std::exchange(lacks_.password, 0));
  if (lacks_.request != 0) all.leave(Strangers::Lacks::request, std::exchange(lacks_.request, 0));
}

void Client::owe_request() {
  if (!authenticated()) return;
  lacks_.request = server_.strangers.enter(*this, Strangers::Lacks::request, connection_->peer_address(),
                                           server_.steady_ms);
}

void Client::heard() {
  if (!std::exchange(lacks_.bytes, false)) return;
  if (lacks_.password != 0) server_.strangers.sent(Strangers::Lacks::password, lacks_.password);
  if (lacks_.request != 0) server_.strangers.sent(Strangers::Lacks::request, lacks_.request);
}

void Client::recount() {
  ClientBudget& budget = server_.client_budget;
  const std::size_t holds = budget.counts() && !closing && !is_replica() ? memory() : 0;
  budget.changed(std::exchange(budgeted_bytes_, holds), holds);
}

void Client::charge() {
  if (server_.client_budget.counts()) recount();
  Strangers& all = server_.strangers;
  const std::size_t holds = authenticated() || closing ? 0 : memory();
  if (holds == charged_bytes_) return;
  all.bytes += holds - charged_bytes_;
  const bool grows = holds > std::exchange(charged_bytes_, holds);
  if (!grows || all.bytes <= all.most_bytes) return;
  server_.log(LogLevel::warning, "closing client " + std::to_string(id_) + " (" +
                                     connection_->peer_address() +
                                     "): clients without the password hold too much memory");
  close();
}

Client::Client(ServerCommon& server, ClientHost& host, std::uint64_t id,
               std::unique_ptr<Connection> connection)
    : output(server.blocks),
      reply(output),
      server_(server),
      host_(host),
      id_(id),
      connection_(std::move(connection)) {}

Client::~Client() { output.clear(); }

void DeleteClient::operator()(Client* client) const { delete client; }

void Client::will_flush() {
  if (dirty) return;
  dirty = true;
  server_.round.dirty.push_back(this);
}

void Client::will_resume() {
  server_.round.resumed.push_back(id_);
  will_flush();
}

void Client::received(std::span<const char> bytes) {
  std::string_view input(bytes.data(), bytes.size());
  server_.refresh_time();
  active_ms = server_.steady_ms;
  heard();
  server_.stats.bytes_in += input.size();
  traffic.bytes_in += input.size();
  if (!input_.wanted().empty()) {
    input_.take_wanted(input);
    if (server_.client_budget.counts()) recount();
    if (refuse_too_much() || !input_.wanted().empty()) return;
  }
  take(input);
}

// A connection calls this before it sends, whatever caused it to send.
ReplyQueue& Client::outgoing() {
  host_.keep_effects();
  return output;
}

std::span<char> Client::wanted() { return input_.wanted(); }

void Client::filled(std::size_t bytes) {
  server_.stats.bytes_in += bytes;
  traffic.bytes_in += bytes;
  input_.filled(bytes);
  if (server_.client_budget.counts()) recount();
  if (refuse_too_much() || !input_.wanted().empty()) return;
  server_.refresh_time();
  active_ms = server_.steady_ms;
  take({});
}

void Client::take(std::string_view fresh) {
  if (ends()) return;  // input after its last request is useless
  process(fresh);
  refuse_too_much();
  charge();
}

// Closes the client if its buffered requests exceed client-query-buffer-limit.
bool Client::refuse_too_much() {
  if (closing) return true;
  if (ends()) return false;  // it has already been told the error
  if (input_.bytes() + input_.argument_bytes() <= limits().query) return false;
  server_.log(LogLevel::warning,
              "closing client " + std::to_string(id_) + " (" + connection_->peer_address() +
                  "): its requests " +
                  (authenticated() ? "reached client-query-buffer-limit"
                                   : "are larger than those of a client without the password may be"));
  close();
  return true;
}

// A client that waits for data to come is not owed an answer: nobody knows whether there will be one.
bool Client::peer_ended() {
  if (closing) return false;
  half_closed_ = close_after_reply || behind() || !output.empty() || owed_by_gateway(server_, *this);
  return half_closed_;
}

void Client::end_if_answered() {
  if (!half_closed_ || ends() || behind() || owed_by_gateway(server_, *this)) return;
  close_after_reply = true;
  will_flush();
}

// Executes the complete requests of what is pending and `fresh`, and keeps the rest.
void Client::process(std::string_view fresh) {
  using Keep = ClientInput::Keep;
  if (input_.in_round()) return;  // resumed by what its own request did
  input_.begin(fresh);
  const std::size_t errors_before = reply.errors;
  const std::uint64_t began = cycles_now();
  while (takes_requests() && input_.any_left()) {
    const auto status = input_.parse({server_.settings.proto_max_bulk_len, authenticated()});
    if (status == RequestParser::Status::incomplete) break;
    if (status == RequestParser::Status::failed) {
      refuse(input_.error());
      break;
    }
    if (lacks_.request != 0) let_in();
    if (!input_.arguments().empty() && !host_.execute(*this, input_.arguments())) {
      input_.wait(ClientInput::Waits::for_turn);
      break;
    }
    input_.next();
    if (host_.limit_output(*this)) break;
    if (output.size() > limits().unsent) {
      input_.wait(ClientInput::Waits::for_output);
    } else if (input_.any_left() && cycles_now() - began > ClientTurns::length) {
      end_turn();
    }
  }
  input_.end(closing ? Keep::nothing : takes_requests() ? Keep::unfinished : Keep::everything);
  server_.stats.error_replies += reply.errors - errors_before;
  if (!output.empty() || close_after_reply) will_flush();
  if (!closing) end_if_answered();
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
  ends_later_ = server_.gateway != nullptr && server_.gateway->end_later(*this, "ERR " + protocol_error);
  if (!ends_later_) {
    reply.error("ERR " + protocol_error);
    close_after_reply = true;
  }
  input_.give_up_request();
}

void Client::drained() {
  traffic.over_soft_limit_since_ms = 0;
  if (close_after_reply) return close();
  if (half_closed_ && !behind() && !owed_by_gateway(server_, *this)) return close();
  if (replica != nullptr) host_.replica_drained(*this);
  if (stalled()) end_turn();  // a peer that reads fast would go on without end
}

void Client::end_turn() {
  input_.wait(ClientInput::Waits::for_others);
  host_.give_turn_later(*this);
}

void Client::resume_later() {
  if (!behind()) end_turn();
}

void Client::take_turn() {
  if (input_.waits() != ClientInput::Waits::for_others) return;
  input_.wait(ClientInput::Waits::no);
  active_ms = server_.steady_ms;
  take({});
  if (!closing) will_flush();  // even with nothing to send: the connection may read again
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
  charge();
  connection_->close();
  host_.forget(*this);
}

}  // namespace weir::kv
