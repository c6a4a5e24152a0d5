#include "rpc/http/conversation.hpp"

#include <algorithm>
#include <array>

#include "rpc/codec/codec.hpp"
#include "rpc/error_details.hpp"
#include "rpc/json/json_body.hpp"
#include "rpc/json/json_codec.hpp"
#include "rpc/wire/hello.hpp"

namespace weir::rpc::http {

namespace {

void put(Bytes& to, FrameHeader header, std::string_view first, std::string_view rest = {}) {
  header.body_bytes = static_cast<std::uint32_t>(first.size() + rest.size());
  encode(header, to.grow(frame_header_bytes));
  to.append(as_bytes(first));
  to.append(as_bytes(rest));
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Error failure_in(const Frame& reply) {
  Error error{errc_of(reply.header.status), std::string(text_of(reply.body))};
  if ((reply.header.flags & FrameFlag::detailed) == 0) return error;
  DetailedFailure failure;
  if (!MessagePack::read(reply.body, failure)) return error;
  auto details = std::make_shared<ErrorDetails>();
  error.what = failure.what;
  details->type = failure.type;
  details->body.assign(failure.body.begin(), failure.body.end());
  error.details = std::move(details);
  return error;
}

}  // namespace

Conversation::Conversation(std::shared_ptr<const Terms> terms, bool over_loopback, TimePoint now)
    : terms_(std::move(terms)),
      over_loopback_(over_loopback),
      now_(now),
      reader_({terms_->options.max_head_bytes, terms_->options.max_body_bytes}),
      began_(now),
      replies_({.body_bytes = terms_->options.max_reply_bytes, .attachment_bytes = 0}) {
  wait(terms_->peer.first_frame);
}

// ---- from the client

void Conversation::received(std::string_view bytes, TimePoint now) {
  now_ = now;
  if (state_ == State::over) return;
  if (is_idle() && unsent().empty() && answered_ > 0) wait(terms_->peer.frame);
  in_.append(bytes);
}

// The front is given back once it is much: requests sent ahead are not moved for each of them.
void Conversation::taken(std::size_t bytes) {
  taken_ += bytes;
  if (taken_ < in_.size() && taken_ < max_ahead_bytes) return;
  in_.erase(0, std::exchange(taken_, 0));
  if (in_.empty()) in_ = std::string();
}

bool Conversation::next(Bytes& frames, TimePoint now) {
  now_ = now;
  if (state_ == State::over) return false;
  if (ping_ && (state_ == State::running || !unsent().empty())) {
    FrameHeader pong;
    pong.kind = FrameKind::pong;
    pong.id = *std::exchange(ping_, std::nullopt);
    put(frames, pong, {});
    return true;
  }
  if (std::exchange(continue_due_, false)) {
    if (input().empty()) out_.append("HTTP/1.1 100 Continue\r\n\r\n");
    return true;
  }
  const bool may_read = state_ == State::body || (state_ == State::head && unsent().empty());
  return may_read && take_input(frames);
}

// True: it is worth looking again.
bool Conversation::take_input(Bytes& frames) {
  looks_again_ = false;
  const auto before = reader_.state();
  const std::size_t bytes = reader_.take(input());
  taken(bytes);
  if (reader_.state() == RequestReader::State::head) return false;
  if (reader_.state() == RequestReader::State::broken) {
    say(answer_of(reader_.fault()), true);
    end();
    return true;
  }
  if (before == RequestReader::State::head) {
    begin_request(frames);
    return true;
  }
  until_ =
      deadline_from(began_, terms_->peer.frame + std::chrono::seconds(reader_.body().size() / (64 << 10)));
  if (reader_.state() == RequestReader::State::whole) send_request(frames);
  return bytes > 0;
}

// Its head is there. The credentials go ahead, so that a client that may not call sends no body.
void Conversation::begin_request(Bytes& frames) {
  const Head& head = reader_.head();
  auto found = wanted(head, {terms_->options, over_loopback_, draining_});
  if (!found) {
    say(found.error(), head.has_body || !head.keep_alive);
    if (head.has_body || !head.keep_alive) return end();
    reader_.next();
    return wait_for_request();
  }
  wanted_ = std::move(*found);
  began_ = now_;
  wait(terms_->peer.frame);
  if (!std::exchange(greeted_, true)) {
    FrameHeader hello;
    hello.kind = FrameKind::settings;
    hello.id = word_of({own_hello.version, static_cast<std::uint32_t>(Feature::details)});
    put(frames, hello, {});
  }
  FrameHeader credentials;
  credentials.kind = FrameKind::credentials;
  if (terms_->sends_credentials) put(frames, credentials, wanted_->token);
  state_ = State::body;
  continue_due_ = head.has_body && head[Field::expect].has_value();
  if (reader_.state() == RequestReader::State::whole) send_request(frames);
}

void Conversation::send_request(Bytes& frames) {
  const bool is_page = wanted_->page != nullptr;
  FrameHeader header;
  header.id = ++id_;
  header.method = method_id(wanted_->function);
  header.codec = is_page ? MessagePack::number : json_codec;
  header.timeout_us =
      static_cast<std::uint32_t>(std::min<std::int64_t>(wanted_->timeout.count(), UINT32_MAX));
  std::array<std::byte, trace_context_bytes> trace;
  if (wanted_->trace) {
    header.flags |= FrameFlag::traced;
    encode(*wanted_->trace, trace.data());
  }
  constexpr std::string_view no_arguments("\x90");
  put(frames, header, wanted_->trace ? text_of(trace) : std::string_view(),
      is_page ? no_arguments : std::string_view(reader_.body()));
  reader_.body() = std::string();
  state_ = State::running;
  until_ = TimePoint::max();  // the server keeps the deadline
}

// ---- from the server

void Conversation::replied(std::span<const std::byte> bytes, TimePoint now) {
  now_ = now;
  if (state_ == State::over || replies_.feed(bytes, *this)) return;
  Answer too_large =
      answer_of(Error{Errc::too_large,
                      "the result is larger than HttpOptions::max_reply_bytes, or has an attachment, "
                      "which HTTP does not carry: call with a client of the library"});
  too_large.status = 500;
  if (state_ == State::running) say(too_large, true);
  end();
}

bool Conversation::on_frame(Frame& frame) {
  switch (frame.header.kind) {
    case FrameKind::ping:
      ping_ = frame.header.id;
      return true;
    case FrameKind::goodbye:
      draining_ = true;
      if (is_idle()) end();
      return state_ != State::over;
    case FrameKind::reply:
      return on_reply(frame);
    default:
      return true;
  }
}

// The number 0 says why the server ends the connection.
bool Conversation::on_reply(const Frame& frame) {
  if (frame.header.id == 0) {
    if (!is_idle()) say(answer_of(failure_in(frame)), true);
    end();
    return false;
  }
  if (state_ == State::running && frame.header.id == id_) finish(answer_of_reply(frame));
  return state_ != State::over;
}

Answer Conversation::answer_of_reply(const Frame& reply) const {
  if (reply.header.status == 0) return answer_of_result(reply.body);
  Error why = named(failure_in(reply), wanted_->function);
  if (why.code == Errc::unknown_method && wanted_->page != nullptr)
    why.what = "the server counts nothing: it was started without ServerOptions::stats";
  return answer_of(why);
}

Answer Conversation::answer_of_result(std::span<const std::byte> result) const {
  const Page* const page = wanted_->page;
  const Registered* const called = terms_->registry->find(method_id(wanted_->function));
  auto text = page != nullptr ? page->show(result)
                              : json::json_from_body(result, called != nullptr ? called->schema.text : "",
                                                     json::BodyOf::result, json::Layout::one_line);
  if (!text) return answer_of(Error{Errc::failed, text.error()});
  if (!text->ends_with('\n')) text->push_back('\n');
  Answer answer{200, std::move(*text), page != nullptr ? page->type : json_type};
  return answer;
}

void Conversation::finish(const Answer& answer) {
  const bool closes = !reader_.head().keep_alive || draining_;
  say(answer, closes);
  if (closes) return end();
  reader_.next();
  wanted_.reset();
  wait_for_request();
}

void Conversation::server_ended(TimePoint now) {
  now_ = now;
  if (state_ != State::over) end();
}

void Conversation::refuse(const Error& why, TimePoint now) {
  now_ = now;
  if (state_ == State::over) return;
  if (!is_idle() && unsent().empty()) say(answer_of(why), true);
  end();
}

// ---- to the client

void Conversation::say(const Answer& answer, bool closes) {
  ++answered_;
  const Head& head = reader_.head();
  const ResponseTerms terms{
      .closes = closes, .without_body = head.method == "HEAD", .origin = origin_of(head, terms_->options)};
  out_.append(response(answer, terms));
}

void Conversation::end() {
  state_ = State::over;
  in_ = std::string();
  taken_ = 0;
  wait(unsent().empty() ? terms_->linger : terms_->peer.keepalive);
}

void Conversation::wait_for_request() {
  state_ = State::head;
  looks_again_ = !input().empty();
  const bool has_begun = unsent().empty() && looks_again_;
  wait(has_begun ? terms_->peer.frame : terms_->peer.keepalive);
}

void Conversation::sent(std::size_t bytes, TimePoint now) {
  now_ = now;
  if (bytes == 0) return;
  sent_ += bytes;
  if (sent_ < out_.size()) {
    if (state_ != State::running) wait(terms_->peer.keepalive);
    return;
  }
  out_ = std::string();
  sent_ = 0;
  if (state_ == State::head) wait_for_request();
  if (state_ == State::over) wait(terms_->linger);
}

void Conversation::on_time(TimePoint now) {
  now_ = now;
  if (now < until_ || state_ == State::over) return;
  if (!unsent().empty()) {
    out_ = std::string();
    sent_ = 0;
  } else if (!is_idle()) {
    say(answer_of(Fault{408, "the request did not come in time"}), true);
  }
  end();
}

}  // namespace weir::rpc::http
