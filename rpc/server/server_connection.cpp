#include "rpc/server/server_connection.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include "rpc/error_details.hpp"
#include "rpc/json/json_body.hpp"
#include "rpc/json/json_codec.hpp"
#include "rpc/link/stream_channel.hpp"
#include "rpc/server/running_call.hpp"

namespace weir::rpc {

namespace {

Error describe_failure(const Registered& method, const std::exception& thrown) {
  return {Errc::failed, method.name + " threw: " + thrown.what()};
}

std::unexpected<Error> threw_something(const Registered& method) {
  return fail(Errc::failed, method.name + " threw what is no std::exception");
}

// Returns what the function returned or threw.
asio::awaitable<Result<void>> run(RunningCall& call) {
  try {
    co_return co_await call.method.later(call.method.object, call.context, call.body.span(), call.reply);
  } catch (const std::system_error& thrown) {
    if (call.reply.ended()) throw;
    if (call.context.cancelled() && thrown.code() == asio::error::operation_aborted)
      co_return fail(call.late ? Errc::deadline_exceeded : Errc::cancelled,
                     call.method.name + (call.late ? " was cancelled at its deadline" : " was cancelled"));
    call.threw = true;
    co_return std::unexpected(describe_failure(call.method, thrown));
  } catch (const std::exception& thrown) {
    if (call.reply.ended()) throw;
    call.threw = true;
    co_return std::unexpected(describe_failure(call.method, thrown));
  }
}

}  // namespace

ServerConnection::ServerConnection(asio::io_context& io, TransportPtr transport,
                                   std::shared_ptr<const ServerRules> rules,
                                   std::shared_ptr<const ServerChain> chain,
                                   std::shared_ptr<ServerTotals> totals, std::shared_ptr<ThreadTurns> turns,
                                   Gone gone)
    : FrameLink(io, std::move(transport), first_limits(*rules)),
      rules_(std::move(rules)),
      chain_(std::move(chain)),
      totals_(std::move(totals)),
      limits_(rules_->limits),
      gone_(std::move(gone)),
      turns_(std::move(turns)),
      watch_(limits_.peer, Context::Clock::now()),
      deadlines_(*this, [this](Deadline now) { return end_late(now); }) {
  use_compression(rules_->compression);
  use_end_limits(limits_.end);
}

ServerConnection::~ServerConnection() { rules_->memory->settle(settled_, 0); }

bool ServerConnection::on_arrival(Frame& frame) {
  const bool goes_on = handle(frame);
  apply_limits();
  return goes_on && is_open();
}

bool ServerConnection::handle(Frame& frame) {
  switch (frame.header.kind) {
    case FrameKind::request:
      request(frame);
      return is_open();
    case FrameKind::cancel:
      if (held_.drop(frame.header.id)) return true;
      if (const auto found = running_.find(frame.header.id); found != running_.end()) found->second->cancel();
      return is_open();
    case FrameKind::pong:
      return true;
    case FrameKind::credentials:
      return authenticate(std::string(reinterpret_cast<const char*>(frame.body.data()), frame.body.size()));
    case FrameKind::item:
    case FrameKind::end:
    case FrameKind::credit:
      return stream_frame(frame) || refuse("a client sent an item without credit or after its end");
    default:
      return refuse("a client sent what only servers send");
  }
}

bool ServerConnection::refuse(const std::string& why) {
  dismiss({Errc::protocol, why});
  return false;
}

// False: the client broke the protocol. A frame for a call that has ended was sent before it knew.
bool ServerConnection::stream_frame(const Frame& frame) {
  const auto found = running_.find(frame.header.id);
  if (found == running_.end() || !found->second->stream()) return found == running_.end();
  StreamChannel& stream = *found->second->stream();
  if (frame.header.kind == FrameKind::item) return stream.on_item(frame.body);
  if (frame.header.kind == FrameKind::credit) return stream.on_credit(frame.header.credit);
  return stream.on_peer_end();
}

namespace {
constexpr std::size_t least_cost = 512;  // per request: thousands of small ones are a turn's work, too
// Memory of a running call: its bookkeeping and its coroutines' frames, whose size nobody knows.
constexpr std::size_t call_upkeep_bytes = 3 << 10;
}  // namespace

void ServerConnection::request(Frame& frame) {
  const std::uint64_t id = frame.header.id;
  ++requests_;
  if (draining_)
    return reply_error(
        id, {Errc::draining, "the server takes no new calls; this one did not run: connect to another"});
  if (rules_->authentication.authenticate && identity_ == nullptr && !authenticate({})) return;
  stay_.settle();
  const Registered* method = rules_->registry.find(frame.header.method);
  if (method == nullptr)
    return reply_error(id, {Errc::unknown_method,
                            "the server has no function of that name: `weir rpc list` shows those it has"});
  if (const Result<void> admitted = admit(*method); !admitted) return reply_error(id, admitted.error());
  const bool in_json = frame.header.codec == json_codec && transport().carries_json();
  if (in_json && method->codec != MessagePack::number)
    return reply_error(id, {Errc::wrong_codec, method->name + " takes " + std::string(method->codec_name) +
                                                   ", which JSON does not become: call it with a client of "
                                                   "the library"});
  if (!in_json && method->codec != frame.header.codec)
    return reply_error(id, {Errc::wrong_codec, method->name + " takes " + std::string(method->codec_name) +
                                                   ", and its arguments came in codec " +
                                                   std::to_string(frame.header.codec) +
                                                   ": declare it at both ends with the same codec"});
  const bool streaming = (frame.header.flags & FrameFlag::streaming) != 0;
  if (method->streams != streaming)
    return reply_error(id, {Errc::bad_arguments,
                            method->name + (method->streams ? " is a stream: open it, do not call it"
                                                            : " is no stream: call it, do not open it")});
  if (!rules_->memory->takes_calls())
    return reply_error(id,
                       {Errc::overloaded, "the server's memory is in use by other calls: try again later"});
  if (frame.packed_bytes > 0) spend(frame.body.size() / 4);
  spend(least_cost + frame.body.size() / 16);
  if (method->now != nullptr) return run_now(*method, frame);
  if (streaming && streams_ >= limits_.max_streams)
    return reply_error(id, {Errc::overloaded, "too many streams of this connection are open: end some"});
  if (running_.contains(id)) return refuse_twin(id);
  run_later(*method, frame);
}

void ServerConnection::refuse_twin(std::uint64_t id) {
  reply_error(id, {Errc::overloaded, "a call of this number is under way; this one did not run"});
}

// Comparing the texts costs far more than reading them.
Result<void> ServerConnection::check_types(const Registered& method, Frame& frame) {
  const Result<CallerSchema> caller = read_caller_schema(frame.body);
  if (!caller) return std::unexpected(caller.error());
  frame.body = frame.body.subspan(caller->bytes());
  const std::size_t before = schemas_.compared();
  std::optional<Error> why = schemas_.why_not(method.name, method.schema, *caller);
  if (schemas_.compared() != before) spend(16 * (caller->text.size() + method.schema.text.size()));
  if (why) return std::unexpected(std::move(*why));
  return {};
}

// The cost: a parsed document takes up to 85 times its text.
Result<void> ServerConnection::arguments_from_json(const Registered& method, Context& context, Frame& frame) {
  const std::string_view text(reinterpret_cast<const char*>(frame.body.data()), frame.body.size());
  spend(32 * text.size());
  auto body = json::body_from_json(text, method.schema.text);
  if (!body) return fail(Errc::bad_arguments, method.name + ": " + body.error());
  context.from_json_ = std::move(*body);
  frame.body = context.from_json_;
  return {};
}

// Reads what precedes the arguments, and tells interceptors of the call.
Result<void> ServerConnection::begin_call(const Registered& method, Context& context, Frame& frame) {
  if (frame.packed_bytes > 0) context.request_packed_ = {1, frame.body.size(), frame.packed_bytes};
  if ((frame.header.flags & FrameFlag::traced) != 0) {
    if (frame.body.size() < trace_context_bytes)
      return fail(Errc::bad_arguments, "a traced request without a trace context");
    context.trace_ = decode_trace(frame.body.first<trace_context_bytes>());
    frame.body = frame.body.subspan(trace_context_bytes);
  }
  if ((frame.header.flags & FrameFlag::typed) != 0)
    if (Result<void> agreed = check_types(method, frame); !agreed) return agreed;
  if ((frame.header.flags & FrameFlag::metadata) != 0) {
    const Result<std::size_t> taken = read_metadata(frame.body, context.metadata);
    if (!taken) return std::unexpected(taken.error());
    frame.body = frame.body.subspan(*taken);
  }
  if (frame.header.codec == json_codec)
    if (Result<void> read = arguments_from_json(method, context, frame); !read) return read;
  if (chain_->empty()) return {};
  context.arrived_ = Context::Clock::now();
  context.request_bytes_ = frame.body.size() + context.attachment.size();
  return ask(*chain_, context);
}

// The chain learns of a call when its reply is complete: an interceptor may drain or stop the server.
void ServerConnection::end_call(Context& context, const Result<void>& outcome, const SentReply& reply) {
  CallEnd end;
  end.error = outcome ? nullptr : &outcome.error();
  end.latency = Context::Clock::now() - context.arrived_;
  end.request_bytes = context.request_bytes_;
  end.reply_bytes = outcome ? reply.bytes : 0;
  end.request_packed = context.request_packed_;
  end.reply_packed = reply.packed;
  tell(*chain_, context, end);
}

// What a function may use: who calls it, and how much memory its arguments may take.
void ServerConnection::lend(Context& context) const {
  context.identity_ = identity_;
  context.decoding_.left = limits_.decoded_bytes();
}

void ServerConnection::run_now(const Registered& method, Frame& frame) {
  Context context(transport(), method.name, frame.header, std::move(frame.attachment));
  lend(context);
  if (const Result<void> begun = begin_call(method, context, frame); !begun)
    return reply_error(frame.header.id, begun.error(), {}, &context);
  Reply reply(*this, limits_.reply, method, context);
  Result<void> outcome;
  bool threw = false;
  try {
    outcome = method.now(method.object, context, frame.body, reply);
  } catch (const std::exception& thrown) {
    if (reply.ended()) throw;
    threw = true;
    outcome = std::unexpected(describe_failure(method, thrown));
  } catch (...) {
    if (reply.ended()) throw;
    outcome = threw_something(method);
  }
  spend(context.decoding_.used);
  if (!outcome) reply_failure(context, method, threw, outcome.error());
  if (!chain_->empty()) end_call(context, outcome, reply.sent());
}

void ServerConnection::run_later(const Registered& method, Frame& frame) {
  auto call = std::make_unique<RunningCall>(std::shared_ptr<CallHost>(shared_from_this(), this), *this,
                                            limits_.reply, method, frame);
  RunningCall& running = *call;
  lend(running.context);
  running.context.blocking_ = rules_->blocking.get();
  if (const Result<void> begun = begin_call(method, running.context, frame); !begun)
    return reply_error(frame.header.id, begun.error(), {}, &running.context);
  running.body.append(frame.body);
  running.context.from_json_ = {};
  running_.emplace(running.id(), &running);
  if (!method.streams) running.argument_bytes = running.body.size() + running.context.attachment.size();
  running_bytes_ += running.argument_bytes;
  running.bytes = call_upkeep_bytes + running.body.size() + running.context.attachment.size() +
                  memory_of(running.context.metadata);
  call_bytes_ += running.bytes;
  if (const auto deadline = running.context.deadline()) deadlines_.keep(*deadline);
  if (method.streams) open_stream(running);
  // The call keeps this connection alive.
  auto done = [this, call = std::move(call)](const std::exception_ptr& thrown, Result<void> outcome) {
    if (thrown && call->reply.ended() && is_open()) std::rethrow_exception(thrown);
    if (thrown) outcome = threw_something(call->method);
    finished(*call, std::move(outcome));
  };
  asio::co_spawn(io(), run(running), asio::bind_cancellation_slot(running.signal.slot(), std::move(done)));
}

void ServerConnection::open_stream(RunningCall& call) {
  StreamLimits limits;
  limits.window_bytes = limits_.stream_window_bytes;
  limits.item_bytes = std::min(limits_.reply.body_bytes, max_item_bytes(limits_.stream_window_bytes));
  limits.max_decoded_bytes = limits_.decoded_bytes();
  limits.max_waiting_bytes = limits_.max_waiting_bytes;
  call.stream() = std::make_shared<StreamChannel>(io(), limits);
  ++streams_;
  call.stream()->start(*this, call.id());
}

void ServerConnection::leave(RunningCall& call) {
  const auto found = running_.find(call.id());
  if (found == running_.end() || found->second != &call) return;
  running_.erase(found);
  running_bytes_ -= call.argument_bytes;
  call_bytes_ -= call.bytes;
  if (call.stream()) --streams_;
  if (!is_open()) settle();
}

void ServerConnection::finished(RunningCall& call, Result<void> outcome) {
  leave(call);
  call.end_stream(Errc::closed);
  if (!outcome) reply_failure(call.context, call.method, call.threw, outcome.error());
  if (!chain_->empty()) end_call(call.context, outcome, call.reply.sent());
  if (is_open()) apply_limits();
}

void ServerConnection::reply_failure(const Context& context, const Registered& method, bool threw,
                                     const Error& why) {
  if (!threw || rules_->exceptions_to_callers) return reply_error(context.header_.id, why, {}, &context);
  reply_error(context.header_.id,
              {Errc::failed, method.name + " threw an exception; the server has its text"}, {}, &context);
}

void ServerConnection::reply_error(std::uint64_t id, const Error& why, Buffer attachment,
                                   const Context* context) {
  constexpr std::size_t longest = 4096;
  if (!is_open()) return;
  const std::size_t begin = begin_frame();
  FrameHeader header;
  header.kind = FrameKind::reply;
  header.status = static_cast<std::uint16_t>(why.code);
  header.id = id;
  if (context != nullptr)
    static_cast<void>(Reply::put_metadata(*this, context->reply_metadata, header.flags));
  const std::string_view what = std::string_view(why.what).substr(0, longest);
  const bool detailed = why.details != nullptr && peer_knows(Feature::details);
  if (detailed && why.details->body.size() <= max_details_bytes) {
    MessagePack::write(encoded(), DetailedFailure{what, why.details->type, why.details->body});
    header.flags |= FrameFlag::detailed;
  } else {
    encoded().append(as_bytes(what));
    if (detailed) encoded().append(as_bytes(std::string_view(" (its details are too large to be sent)")));
  }
  end_frame(begin, header, std::move(attachment));
}

// An error of the connection as a whole has id 0.
void ServerConnection::on_nonsense(const Error& why) {
  const std::uint64_t culprit = oversize_call();
  reply_error(0, why, culprit != 0 ? Buffer::copy_of(std::as_bytes(std::span(&culprit, 1))) : Buffer());
}

void ServerConnection::on_end(const Error&) {
  stay_.settle();
  deadlines_.cancel();
  held_.clear();
  cancel_all();
  settle();
}

void ServerConnection::cancel_all() {
  // A cancelled coroutine may end, and leave the table, before emit() returns.
  std::vector<std::uint64_t> ids;
  for (const auto& [id, call] : running_) ids.push_back(id);
  for (const std::uint64_t id : ids)
    if (const auto found = running_.find(id); found != running_.end()) found->second->cancel();
}

void ServerConnection::drain() {
  if (draining_ || !is_open()) return;
  draining_ = true;
  FrameHeader header;
  header.kind = FrameKind::goodbye;
  send(header);
  apply_limits();
  flush();
}

void ServerConnection::turn_away(const Error& why) {
  start();
  dismiss(why);
}

void ServerConnection::dismiss(const Error& why) {
  on_nonsense(why);
  close_gracefully(why);
}

void ServerConnection::stop() {
  gone_ = nullptr;
  close();
  on_end({Errc::closed, "the server stopped"});
}

void ServerConnection::on_gone() {
  settle();
  if (gone_) std::exchange(gone_, nullptr)(*this);
}

DeadlineTimer::Look ServerConnection::end_late(Deadline now) {
  auto next = no_deadline;
  const std::size_t running = running_.size();
  std::vector<std::uint64_t> late;
  for (const auto& [id, call] : running_) {
    if (call->context.cancelled()) continue;
    const auto deadline = call->context.deadline();
    if (!deadline) continue;
    *deadline <= now ? late.push_back(id) : void(next = std::min(next, *deadline));
  }
  for (const std::uint64_t id : late)
    if (const auto found = running_.find(id); found != running_.end()) found->second->cancel(true);
  return {next, running};
}

}  // namespace weir::rpc
