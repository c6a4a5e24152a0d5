#include "kv/gateway/node_link.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kv/gateway/reply_reader.hpp"
#include "kv/resp/request_text.hpp"

namespace weir::kv::cluster {

namespace {
constexpr std::string_view asking_request = "*1\r\n$6\r\nASKING\r\n";
// Larger buffers are freed when they are empty.
constexpr std::size_t kept_buffer = std::size_t{1} << 20;
// HELLO is answered with some hundred bytes, for each module some more.
constexpr std::size_t longest_greeting = std::size_t{64} << 10;

std::string first_line(std::string_view reply) {
  constexpr std::size_t most_shown = 100;
  return std::string(reply.substr(0, std::min(reply.find('\r'), most_shown)));
}
// HELLO answers with pairs of a name and a value, in RESP2 as a flat array. 0: there is no id among them.
std::int64_t id_in_greeting(std::string_view reply) {
  ReplyReader reader(reply);
  const auto pairs = reply.front() == '%' ? reader.map() : reader.array();
  for (std::int64_t i = 0; pairs && i < *pairs; ++i) {
    const auto name = reader.text();
    if (name == "id") return reader.integer().value_or(0);
    if (!name || !reader.skip()) break;
  }
  return 0;
}

}  // namespace

NodeLink::NodeLink(Owner& owner, NodeAddress address, LinkSettings settings)
    : owner_(owner),
      address_(std::move(address)),
      settings_(std::move(settings)),
      output_(owner.blocks()),
      unfinished_(settings_.unfinished_replies, address_.host + ':' + std::to_string(address_.port), [this] {
        break_off("it began the most of what the nodes have not ended, and that is too much");
      }) {}

NodeLink::~NodeLink() {
  if (connection_ != nullptr) connection_->close();
  output_.clear();
}

void NodeLink::dial() {
  begun_ms_ = owner_.now_ms();
  auto begun = owner_.dial_node(
      address_, [this](Opened<std::unique_ptr<Connection>> outcome) { dialled(std::move(outcome)); });
  if (!begun) return break_off(begun.error());
  dialling_ = std::move(*begun);
}

void NodeLink::dialled(Opened<std::unique_ptr<Connection>> outcome) {
  if (outcome) {
    stage_ = Stage::greets;
    connection_ = std::move(*outcome);
    connection_->start(*this);
    greet();
  } else {
    break_off("cannot connect: " + outcome.error());
  }
  owner_.round_is_over();
}

void NodeLink::greet() {
  std::string text;
  const std::string_view version = settings_.protocol == Protocol::resp3 ? "3" : "2";
  if (settings_.password.empty()) {
    const std::array<RequestWord, 2> words{"HELLO", version};
    append_request(text, words);
  } else {
    const std::string_view user = settings_.user.empty() ? std::string_view("default") : settings_.user;
    const std::array<RequestWord, 5> words{"HELLO", version, "AUTH", user, settings_.password};
    append_request(text, words);
  }
  output_.append(text);
  connection_->flush();
}

void NodeLink::send(Request request, std::string_view bytes, bool asking) {
  request.bytes = bytes.size();
  request.since_ms = owner_.now_ms();
  request.replies_before = request.parts_before + (asking ? 1 : 0);
  request.error_before.reset();
  log_.append(bytes);
  if (stage_ == Stage::ready) {
    if (asking) output_.append(asking_request);
    output_.append(bytes);
  }
  waiting_.push_back(std::move(request));
}

void NodeLink::flush() {
  if (stage_ == Stage::ready && !output_.empty()) connection_->flush();
}

void NodeLink::received(std::span<const char> bytes) {
  std::string_view rest(bytes.data(), bytes.size());
  const bool kept_some = !input_.empty();
  if (kept_some) {
    input_.append(rest);
    rest = input_;
  }
  while (!rest.empty()) {
    const ReplyFrame::Status status = frame_.scan(rest);
    if (status == ReplyFrame::Status::incomplete) break;
    if (status == ReplyFrame::Status::failed) return break_off("it sent an invalid reply");
    const std::size_t size = frame_.size();
    frame_.next();
    take(rest.substr(0, size));
    if (stage_ == Stage::ended) return;
    rest.remove_prefix(size);
  }
  if (rest.size() > longest_reply()) return break_off("it sent a reply that is too long");
  if (!kept_some) {
    input_ = rest;
  } else {
    input_.erase(0, input_.size() - rest.size());
    if (input_.empty() && input_.capacity() > kept_buffer) input_.shrink_to_fit();
  }
  unfinished_.hold(input_.size());
}

std::size_t NodeLink::longest_reply() const {
  return stage_ == Stage::greets ? longest_greeting : settings_.longest_reply;
}

void NodeLink::take(std::string_view reply) {
  if (reply.front() == '>') return take_push(reply);
  if (stage_ == Stage::greets) {
    if (reply.front() == '-') {
      const bool wants_other = reply.starts_with("-NOAUTH") || reply.starts_with("-WRONGPASS");
      return break_off("it refuses HELLO: " + first_line(reply.substr(1)) +
                       (wants_other ? "; check --masteruser and --masterauth" : ""));
    }
    stage_ = Stage::ready;
    client_id_ = id_in_greeting(reply);
    std::size_t at = answered_;
    for (Request& request : waiting_) {
      if (request.replies_before > request.parts_before) output_.append(asking_request);
      output_.append(std::string_view(log_).substr(at, request.bytes));
      request.since_ms = owner_.now_ms();
      at += request.bytes;
    }
    return owner_.link_ready(*this);
  }
  if (waiting_.empty()) return break_off("it sent a reply without a request");
  if (Request& first = waiting_.front(); first.replies_before > 0) {
    --first.replies_before;
    if (reply.front() == '-' && first.error_before == nullptr)
      first.error_before = std::make_unique<std::string>(reply);
    return;
  }
  Request request = std::move(waiting_.front());
  waiting_.pop_front();
  const std::size_t bytes = request.bytes;
  owner_.replied(*this, std::move(request), std::string_view(log_).substr(answered_, bytes), reply);
  forget_front(bytes);
}

void NodeLink::take_push(std::string_view push) {
  if (!owner_.pushed(*this, push) || stage_ != Stage::ready || waiting_.empty()) return;
  const std::size_t bytes = waiting_.front().bytes;
  waiting_.pop_front();
  forget_front(bytes);
}

void NodeLink::forget_front(std::size_t bytes) {
  answered_ += bytes;
  if (answered_ == log_.size()) {
    log_.clear();
    if (log_.capacity() > kept_buffer) log_.shrink_to_fit();
  } else if (answered_ < kept_buffer / 16 || answered_ < log_.size() / 2) {
    return;  // wait until half of it is answered, so that each byte is moved at most once on average
  } else {
    log_.erase(0, answered_);
  }
  answered_ = 0;
}

void NodeLink::look_at_clock() {
  const std::int64_t now = owner_.now_ms();
  if (stage_ == Stage::ended) return;
  if (stage_ != Stage::ready) {
    if (now - begun_ms_ > settings_.connect_ms)
      break_off(stage_ == Stage::dials ? "it does not accept the connection" : "it does not answer HELLO");
  } else if (!waiting_.empty() && !waiting_.front().may_wait &&
             now - waiting_.front().since_ms > settings_.answer_ms) {
    break_off("it has not answered for " + std::to_string(settings_.answer_ms) + " ms");
  }
}

void NodeLink::close() {
  stage_ = Stage::ended;
  dialling_.reset();
  if (connection_ != nullptr) connection_->close();
  output_.clear();
  unfinished_.hold(0);
}

void NodeLink::break_off(const std::string& why) {
  if (stage_ == Stage::ended) return;
  const bool sent = stage_ == Stage::ready;
  close();
  owner_.link_ended(*this, why, std::exchange(waiting_, {}), sent);
}

}  // namespace weir::kv::cluster
