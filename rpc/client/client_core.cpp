#include "rpc/client/client_core.hpp"

#include <algorithm>
#include <asio/post.hpp>
#include <cstring>
#include <string>
#include <unordered_set>

#include "rpc/codec/agreed_schemas.hpp"
#include "rpc/codec/method_schema.hpp"
#include "rpc/codec/schema_check.hpp"
#include "rpc/error_details.hpp"
#include "rpc/link/stream_channel.hpp"

namespace weir::rpc {

namespace {
constexpr unsigned slot_bits = 24;
constexpr std::uint64_t slot_mask = (1u << slot_bits) - 1;

// Room for a trace and, unless they are unusually many, the caller's types.
constexpr std::size_t before_arguments_bytes = trace_context_bytes + CallerSchema::fixed_bytes + 512;

std::uint32_t wire_timeout(std::chrono::microseconds timeout) {
  if (timeout.count() <= 0) return 0;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(timeout.count(), UINT32_MAX));
}

// A call that is told of its end in a later turn; if the io_context goes before that, the call is freed.
struct Abandon {
  void operator()(PendingCall* call) const { call->abandon(); }
};
using CallToTell = std::unique_ptr<PendingCall, Abandon>;

Bytes copy_of(std::span<const std::byte> body) {
  Bytes copy;
  copy.append(body);
  return copy;
}

// The call whose frame was too large; 0, which is no call's id, if the server does not say.
std::uint64_t culprit_in(const Buffer& attachment) {
  std::uint64_t id = 0;
  if (attachment.size() == sizeof id) std::memcpy(&id, attachment.data(), sizeof id);
  return id;
}
Error failure_in(const FrameHeader& header, std::span<const std::byte> body) {
  Error error;
  error.code = errc_of(header.status);
  if ((header.flags & FrameFlag::detailed) == 0) {
    error.what.assign(reinterpret_cast<const char*>(body.data()), body.size());
    return error;
  }
  DetailedFailure failure;
  if (const Result<void> read = MessagePack::read(body, failure); !read) {
    error.what = "the server's words for it make no sense: " + read.error().what;
    return error;
  }
  error.what = failure.what;
  auto details = std::make_shared<ErrorDetails>();
  details->type = failure.type;
  details->body.assign(failure.body.begin(), failure.body.end());
  error.details = std::move(details);
  return error;
}
}  // namespace

// The clients of an io_context: their calls end with it.
class ClientsOfContext final : public asio::execution_context::service {
 public:
  using key_type = ClientsOfContext;
  static asio::execution_context::id id;
  explicit ClientsOfContext(asio::io_context& io) : asio::execution_context::service(io) {}

  ClientsOfContext* add(ClientCore& client) {
    clients_.insert(&client);
    return this;
  }
  void remove(ClientCore& client) { clients_.erase(&client); }

 private:
  void shutdown() override {
    while (!clients_.empty()) {
      // A freed coroutine may have owned clients, including this one.
      const auto client = std::static_pointer_cast<ClientCore>((*clients_.begin())->shared_from_this());
      clients_.erase(clients_.begin());
      client->context_clients_ = nullptr;
      client->abandon_calls();
    }
  }

  std::unordered_set<ClientCore*> clients_;
};
asio::execution_context::id ClientsOfContext::id;

ClientCore::ClientCore(asio::io_context& io, TransportPtr transport, const ConnectionLimits& limits)
    : FrameLink(io, std::move(transport), with_items(limits.frame, limits.stream_window_bytes)),
      context_clients_(asio::use_service<ClientsOfContext>(io).add(*this)),
      limits_(limits),
      deadlines_(*this, [this](Clock::time_point now) { return end_late(now); }),
      next_look_(io) {}

ClientCore::~ClientCore() {
  if (context_clients_ != nullptr) context_clients_->remove(*this);
  abandon_calls();
}

void ClientCore::abandon_calls() {
  close();  // a freed coroutine may cancel calls of its own: send nothing
  // By index: meanwhile slots may be released, but none added.
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state != State::waiting) continue;
    PendingCall* const call = slots_[i].call;
    release(slots_[i]);
    call->abandon();
  }
}

Result<ClientCore::Draft> ClientCore::begin(std::uint64_t method, BodySize expected) {
  if (!is_open()) return std::unexpected(lost_a_frame() ? frame_loss() : end_cause_);
  if (draining_) return fail(Errc::draining, "the server takes no new calls: connect to another");
  if (in_flight_ >= limits_.max_in_flight)
    return fail(Errc::overloaded,
                std::to_string(in_flight_) +
                    " calls are in flight on this connection: await some, or raise max_in_flight");
  if (waiting_bytes() > limits_.max_waiting_bytes)
    return fail(Errc::overloaded, std::to_string(waiting_bytes()) +
                                      " bytes wait for the server to read them: await some calls first");
  return Draft{begin_frame({expected.bytes + before_arguments_bytes, expected.referable}), method};
}

Result<void> ClientCore::put_before_arguments(Draft& draft, const CallOptions& options,
                                              const MethodSchema* schema) {
  try {
    if (options.trace != nullptr) {
      encode(*options.trace, encoded().grow(trace_context_bytes));
      draft.flags |= FrameFlag::traced;
    }
    if (schema != nullptr) draft.function = schema->function;
    if (schema != nullptr && schema->id != 0 && peer_knows(Feature::schemas)) put_types(draft, *schema);
    if (options.metadata == nullptr || options.metadata->empty() || !peer_knows(Feature::metadata)) return {};
    draft.flags |= FrameFlag::metadata;
    Result<void> put = rpc::append(encoded(), *options.metadata);
    if (!put) drop_frame(draft.begin);
    return put;
  } catch (...) {
    drop_frame(draft.begin);
    throw;
  }
}

void ClientCore::put_types(Draft& draft, const MethodSchema& schema) {
  const bool without = schema.id_without_enumerators != 0 &&
                       (!peer_knows(Feature::enumerators) || schema.text.size() > max_schema_bytes);
  const std::string_view text = without ? schema.text_without_enumerators : schema.text;
  CallerSchema caller{without ? schema.id_without_enumerators : schema.id, {}};
  const bool unsent = sent_schemas_[caller.id % sent_schemas_.size()] != caller.id;
  if (unsent && text.size() <= max_schema_bytes) caller.text = text;
  rpc::append(encoded(), caller);
  draft.flags |= FrameFlag::typed;
  draft.schema = caller.id;
}

// What the end of a call tells us: the server knows the types now, or has forgotten them.
void ClientCore::learn(const Slot& slot, std::uint16_t status) {
  if (slot.schema == 0) return;
  std::uint64_t& sent = sent_schemas_[slot.schema % sent_schemas_.size()];
  if (status == 0)
    sent = slot.schema;
  else if (status == static_cast<std::uint16_t>(Errc::schema_mismatch) && sent == slot.schema)
    sent = 0;
}

void ClientCore::greet() {
  if (const auto greeted = std::exchange(greeted_, nullptr)) greeted();
}

Result<std::uint64_t> ClientCore::commit(const Draft& draft, const CallOptions& options) {
  const bool given = options.attachment_given != nullptr;
  const std::size_t attached = given ? options.attachment_given->size() : options.attachment.size();
  if (body_bytes(draft.begin) > limits_.request.body_bytes || attached > limits_.request.attachment_bytes) {
    const std::size_t body = body_bytes(draft.begin);
    drop_frame(draft.begin);
    return fail(Errc::too_large,
                "arguments of " + std::to_string(body) + " bytes and an attachment of " +
                    std::to_string(attached) + ", beyond the limits of " +
                    std::to_string(limits_.request.body_bytes) + " and " +
                    std::to_string(limits_.request.attachment_bytes) +
                    ": raise ConnectionLimits::request, and ServerLimits::frame at the server");
  }
  // A stream has no timeout unless the caller sets one.
  const bool streaming = (draft.flags & FrameFlag::streaming) != 0;
  const auto timeout = options.timeout.count() != 0 || streaming ? options.timeout : limits_.timeout;
  const Deadline deadline = timeout.count() > 0 ? deadline_in(timeout) : no_deadline;
  Buffer attachment;
  try {
    if (free_.empty()) add_slot();
    deadlines_.keep(deadline);
    attachment = attachment_of(options);
  } catch (...) {
    drop_frame(draft.begin);
    throw;
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  ++in_flight_;
  Slot& slot = slots_[index];
  slot.state = State::unclaimed;
  slot.attachment = options.reply_attachment;
  slot.into = options.reply_into;
  slot.lent = !given && !options.attachment.empty();
  slot.tokens = tokens_sent_;
  slot.schema = draft.schema;
  slot.function = draft.function;
  slot.metadata = options.reply_metadata;
  slot.deadline = deadline;

  FrameHeader header;
  header.kind = draft.kind;
  header.flags = draft.flags | (options.idempotent ? FrameFlag::idempotent : 0);
  header.id = slot.generation << slot_bits | index;
  header.method = draft.method;
  header.codec = draft.codec != 0 ? draft.codec : options.codec;
  header.timeout_us = draft.kind == FrameKind::request ? wire_timeout(timeout) : 0;
  end_frame(draft.begin, header, std::move(attachment));
  return header.id;
}

// The caller may reuse its own attachment once the call has ended, so copy it if it is sent in place.
Buffer ClientCore::attachment_of(const CallOptions& options) {
  if (options.attachment_given != nullptr) return std::move(*options.attachment_given);
  const std::span<const std::byte> lent = options.attachment;
  if (!transport().sends_in_place(lent)) return Buffer::borrowed(lent);
  Buffer copy = transport().buffer(lent.size());
  std::memcpy(copy.data(), lent.data(), lent.size());
  return copy;
}

// free_ has room for all slots, so that releasing a slot needs no memory.
void ClientCore::add_slot() {
  constexpr std::size_t least = 8;
  if (free_.capacity() <= slots_.size()) free_.reserve(std::max(least, 2 * slots_.size()));
  slots_.emplace_back();
  free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
}

ClientCore::Slot* ClientCore::find(std::uint64_t id) {
  const std::uint64_t index = id & slot_mask;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.state != State::free && slot.generation == id >> slot_bits ? &slot : nullptr;
}

void ClientCore::claim(std::uint64_t id, PendingCall& call) {
  Slot* slot = find(id);
  slot->call = &call;
  if (slot->state == State::unclaimed) {
    slot->state = State::waiting;
    return;
  }
  const auto early = std::move(slot->early);
  release(*slot);
  asio::post(io(), [caller = CallToTell(&call), early = std::move(*early)]() mutable {
    if (early)
      caller.release()->complete(early->span());
    else
      caller.release()->complete(std::unexpected(std::move(early.error())));
  });
}

void ClientCore::post_failure(PendingCall& call, Error why) {
  asio::post(io(), [caller = CallToTell(&call), why = std::move(why)]() mutable {
    caller.release()->complete(std::unexpected(std::move(why)));
  });
}

void ClientCore::release(Slot& slot) {
  const auto index = static_cast<std::uint32_t>(&slot - slots_.data());
  if (slot.lent) let_go_outgoing(slot.generation << slot_bits | index);
  if (slot.filling) let_go_incoming();
  const std::uint64_t generation = slot.generation + 1;
  slot = Slot();
  slot.generation = generation;
  free_.push_back(index);
  --in_flight_;
}

void ClientCore::end(Slot& slot, Result<std::span<const std::byte>> body) {
  if (slot.state == State::unclaimed) {
    slot.early = std::make_unique<Result<Bytes>>(
        body ? Result<Bytes>(copy_of(*body)) : Result<Bytes>(std::unexpected(std::move(body.error()))));
    slot.state = State::ended;
    slot.deadline = Clock::time_point::max();
    return;
  }
  if (slot.state != State::waiting) return;
  PendingCall* call = slot.call;
  release(slot);  // first, because the completion may make the next call
  call->complete(std::move(body));
}

void ClientCore::cancel(std::uint64_t id) {
  Slot* slot = find(id);
  if (slot == nullptr) return;
  if (slot->state != State::ended) {
    FrameHeader header;
    header.kind = FrameKind::cancel;
    header.id = id;
    send(header);
  }
  if (slot->state != State::waiting) return release(*slot);
  end(*slot, fail(Errc::cancelled, "cancelled by the caller"));
}

Buffer ClientCore::make_attachment(const FrameHeader& header) {
  Slot* slot = find(header.id);
  if (has_place_for(header)) {
    slot->filling = true;
    return {slot->into.first(header.attachment_bytes), nullptr, nullptr};
  }
  return Buffer(header.attachment_bytes);
}

bool ClientCore::has_place_for(const FrameHeader& header) {
  const Slot* slot = find(header.id);
  return slot != nullptr && slot->into.size() >= header.attachment_bytes;
}

bool ClientCore::on_arrival(Frame& frame) {
  if (frame.header.kind == FrameKind::goodbye) {
    draining_ = true;
    return true;
  }
  if (frame.header.kind == FrameKind::item || frame.header.kind == FrameKind::credit)
    return stream_frame(frame) || give_up({Errc::protocol, "the server sent an item without credit"});
  if (frame.header.kind == FrameKind::pong) {
    if (Slot* slot = find(frame.header.id)) end(*slot, frame.body);
    return true;
  }
  if (frame.header.kind != FrameKind::reply)
    return give_up({Errc::protocol, "the server sent what only clients send"});
  if (frame.header.id == 0)  // for the connection as a whole
    return give_up(failure_in(frame.header, frame.body), culprit_in(frame.attachment));
  Slot* slot = find(frame.header.id);
  if (slot == nullptr) return true;  // cancelled, or too late
  slot->filling = false;
  // If several calls were refused for one token, the first of them asks for the next token.
  if (frame.header.status == static_cast<std::uint16_t>(Errc::unauthenticated) &&
      slot->tokens == tokens_sent_) {
    static_cast<void>(send_token());
    slot = find(frame.header.id);  // the token's provider may have made calls, too
    if (slot == nullptr) return is_open();
  }
  learn(*slot, frame.header.status);
  if ((frame.header.flags & FrameFlag::metadata) != 0) {
    Metadata came;
    const Result<std::size_t> taken = read_metadata(frame.body, came);
    if (!taken) return give_up({Errc::protocol, "the server sent " + taken.error().what});
    frame.body = frame.body.subspan(*taken);
    if (slot->metadata != nullptr) *slot->metadata = std::move(came);
  }
  if (slot->attachment != nullptr) *slot->attachment = std::move(frame.attachment);
  if (frame.header.status == 0)
    end(*slot, frame.body);
  else
    end(*slot, std::unexpected(named(failure_in(frame.header, frame.body), slot->function)));
  return true;
}

bool ClientCore::give_up(const Error& why, std::uint64_t culprit) {
  close();
  end_calls(why, culprit, "the server");
  return false;
}

// False: the server broke the protocol. A frame for a stream that has ended was sent before it knew.
bool ClientCore::stream_frame(const Frame& frame) {
  Slot* slot = find(frame.header.id);
  if (slot == nullptr) return true;
  StreamChannel* stream = slot->state == State::waiting ? slot->call->stream() : nullptr;
  if (stream == nullptr) return false;
  return frame.header.kind == FrameKind::item ? stream->on_item(frame.body)
                                              : stream->on_credit(frame.header.credit);
}

Result<void> ClientCore::present(TokenProvider provider) {
  token_ = std::move(provider);
  return send_token();
}

Result<void> ClientCore::send_token() {
  if (!token_ || !is_open()) return {};
  std::string token;
  try {
    token = token_();
  } catch (const std::exception& thrown) {
    return fail(Errc::unauthenticated, std::string("no token can be had: ") + thrown.what());
  } catch (...) {
    return fail(Errc::unauthenticated, "no token can be had: what was thrown is no std::exception");
  }
  if (!is_open()) return {};
  ++tokens_sent_;
  const std::size_t begin = begin_frame();
  encoded().append(as_bytes(token));
  FrameHeader header;
  header.kind = FrameKind::credentials;
  end_frame(begin, header);
  return {};
}

void ClientCore::end_because(Error why) {
  if (!is_open()) return;
  close();
  end_cause_ = std::move(why);
  asio::post(io(), [self = std::static_pointer_cast<ClientCore>(shared_from_this())] {
    self->close_calls(Error(self->end_cause_));
  });
}

void ClientCore::on_end(const Error& cause) { end_calls(cause, oversize_call(), "this end"); }

// One call caused an oversized frame; the others only lose their connection.
void ClientCore::end_calls(const Error& cause, std::uint64_t culprit, const std::string& who) {
  const bool of_one = cause.code == Errc::too_large;
  const Error of_others{of_one ? Errc::connection_lost : cause.code,
                        of_one ? who + " ended the connection: " + cause.what : cause.what};
  end_cause_ = of_others;
  if (Slot* slot = find(culprit); of_one && slot != nullptr) end(*slot, std::unexpected(cause));
  close_calls(of_others);
  greet();
}

void ClientCore::leave_if_drained() {
  if (!draining_ || in_flight_ > 0 || !is_open()) return;
  close();
  on_end({Errc::draining, "the server takes no new calls: connect to another"});
}

void ClientCore::keep_alive() {
  server_.emplace(limits_.keepalive, Clock::now());
  if (server_->period().count() > 0 && is_open()) look_later();
}

void ClientCore::look_later() {
  next_look_.expires_after(server_->period());
  next_look_.async_wait([weak = weak_from_this()](const std::error_code& cancelled) {
    const auto self = std::static_pointer_cast<ClientCore>(weak.lock());
    if (!cancelled && self && self->is_open()) self->look_at_server();
  });
}

void ClientCore::look_at_server() {
  const ServerWatch::Next next =
      server_->look(Clock::now(), {stats().bytes_received, stats().bytes_sent, waiting_bytes()});
  if (next == ServerWatch::Next::gone)
    return static_cast<void>(
        give_up({Errc::connection_lost, "the server sent nothing for long and did not answer a ping"}));
  FrameHeader ping;
  ping.kind = FrameKind::ping;  // of the number 0, which is no call's: nobody waits for its pong
  if (next == ServerWatch::Next::ping) send(ping);
  look_later();
}

void ClientCore::close_calls(const Error& why) {
  deadlines_.cancel();
  next_look_.cancel();
  // By index: a completion may make calls, which fail at once, or release the client.
  const auto self = shared_from_this();
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].state != State::free) end(slots_[i], std::unexpected(why));
}

DeadlineTimer::Look ClientCore::end_late(Clock::time_point now) {
  auto next = no_deadline;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.state == State::free || slot.state == State::ended) continue;
    if (slot.deadline > now) {
      next = std::min(next, slot.deadline);
      continue;
    }
    FrameHeader header;
    header.kind = FrameKind::cancel;
    header.id = slot.generation << slot_bits | i;
    send(header);
    end(slot, fail(Errc::deadline_exceeded, "no reply before the deadline; the function may have run"));
  }
  return {next, slots_.size()};
}

}  // namespace weir::rpc
