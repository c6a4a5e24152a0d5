#include "rpc/http/gateway.hpp"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <new>
#include <utility>

namespace weir::rpc::http {

namespace {

using Clock = std::chrono::steady_clock;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Of Transport::peer(): "tcp 127.0.0.1:4711".
bool is_over_loopback(std::string_view peer) {
  return peer.starts_with("tcp 127.") || peer.starts_with("tcp ::1:") || peer.starts_with("tcp ::ffff:127.");
}

// What a client's first byte says: 'W' begins a frame, and each other capital letter a method of HTTP.
bool begins_http(std::byte first) {
  return first >= std::byte{'A'} && first <= std::byte{'Z'} && first != std::byte{'W'};
}

class Gateway final : public Transport, private TransportUser, public std::enable_shared_from_this<Gateway> {
 public:
  Gateway(asio::io_context& io, TransportPtr behind, GatewayTerms terms)
      : io_(io), behind_(std::move(behind)), terms_(std::move(terms)), timer_(io) {}
  ~Gateway() override {
    behind_->close();
    terms_.memory->settle(settled_, 0);
  }

  // ---- for the server

  void start(TransportUser& user) override {
    user_ = &user;
    behind_->start(*this);
  }
  std::size_t write(std::span<const asio::const_buffer> pieces) override {
    if (speaks_frames_) return early_.empty() ? behind_->write(pieces) : 0;
    std::size_t bytes = 0;
    for (const asio::const_buffer& piece : pieces) {
      const std::span<const std::byte> part(static_cast<const std::byte*>(piece.data()), piece.size());
      bytes += part.size();
      conversation_ ? conversation_->replied(part, Clock::now()) : early_.append(part);
    }
    if (conversation_ && !busy_) send();
    return bytes;
  }
  void read_on(bool on) override {
    server_reads_ = on;
    apply_reading();
  }
  bool end_output() override {
    output_ends_ = true;
    if (speaks_frames_ && early_.empty()) return behind_->end_output();
    if (!conversation_) return false;
    conversation_->server_ended(Clock::now());
    if (!busy_) send();
    return false;
  }
  void close() override {
    user_ = nullptr;
    timer_.cancel();
    behind_->close();
  }
  std::string peer() const override { return behind_->peer(); }
  std::string peer_certificate() const override { return behind_->peer_certificate(); }
  bool carries_json() const override { return conversation_ != nullptr; }

 private:
  // ---- for the transport behind

  std::span<std::byte> wanted() override { return speaks_frames_ ? user_->wanted() : std::span<std::byte>(); }
  void filled(std::size_t bytes) override { user_->filled(bytes); }
  void received(std::span<const std::byte> bytes) override {
    if (speaks_frames_) return user_->received(bytes);
    if (bytes.empty()) return;
    const auto self = shared_from_this();
    if (!conversation_ && !begins_http(bytes.front())) return speak_frames(bytes);
    guard([&] { conversation_ ? conversation_->received(as_text(bytes), Clock::now()) : speak_http(bytes); });
    take_turn();
  }
  void round_ended() override {
    if (!conversation_) return user_->round_ended();
    const auto self = shared_from_this();
    end_turn();
  }
  void writable() override {
    const auto self = shared_from_this();
    if (conversation_) return blocked_ = false, send();
    if (send_early()) user_->writable();
  }
  bool writes_on() const override {
    return conversation_ ? !conversation_->unsent().empty() : user_->writes_on();
  }
  void ended(Error cause) override {
    const auto self = shared_from_this();
    timer_.cancel();
    if (user_ != nullptr) std::exchange(user_, nullptr)->ended(std::move(cause));
  }

  // ---- frames

  void speak_frames(std::span<const std::byte> bytes) {
    speaks_frames_ = true;
    send_early();
    user_->received(bytes);
  }
  // True: all of it was sent.
  bool send_early() {
    if (!early_.empty()) {
      const asio::const_buffer rest(early_.data(), early_.size());
      early_.erase_front(behind_->write(std::span(&rest, 1)));
    }
    if (early_.empty() && output_ends_) behind_->end_output();
    return early_.empty();
  }

  // ---- HTTP

  void speak_http(std::span<const std::byte> bytes) {
    const auto now = Clock::now();
    conversation_ = std::make_unique<Conversation>(terms_.terms, is_over_loopback(behind_->peer()), now);
    conversation_->received(as_text(bytes), now);
    conversation_->replied(early_.span(), now);
    if (output_ends_) conversation_->server_ended(now);
    early_ = Bytes();
  }

  // What a client sends may end its own connection and no more, even if there is no memory for it.
  template <class Work>
  void guard(Work work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      give_up("there was no memory for what an HTTP client sent or asked for");
    }
  }
  void give_up(const char* why) {
    behind_->close();
    ended({Errc::connection_lost, why});
  }

  // Gives the server what has come, one request at most.
  void take_turn() {
    if (user_ == nullptr || std::exchange(busy_, true)) return;
    guard([this] {
      Bytes frames;
      while (user_ != nullptr && conversation_->next(frames, Clock::now())) {
        if (!frames.empty()) user_->received(frames.span());
        frames.clear();
      }
    });
    busy_ = false;
  }
  // The server sends what it has, and the client gets that.
  void end_turn() {
    if (user_ == nullptr) return;
    busy_ = true;
    user_->round_ended();
    busy_ = false;
    send();
  }
  // The next one of several requests that came together has its turn when others have had theirs.
  void continue_soon() {
    if (std::exchange(continues_, true)) return;
    asio::post(io_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->continues_ = false;
      self->take_turn();
      self->end_turn();
    });
  }

  void send() {
    if (user_ == nullptr) return;
    guard([this] {
      while (!blocked_ && !conversation_->unsent().empty()) {
        const asio::const_buffer rest(conversation_->unsent().data(), conversation_->unsent().size());
        const std::size_t taken = behind_->write(std::span(&rest, 1));
        blocked_ = taken < rest.size();
        conversation_->sent(taken, Clock::now());
      }
      if (!terms_.memory->settle(settled_, conversation_->held_bytes()))
        conversation_->refuse({Errc::overloaded, "the server has no memory left for this: try again later"},
                              Clock::now());
      if (conversation_->is_over() && conversation_->unsent().empty() && !std::exchange(output_ended_, true))
        behind_->end_output();
      if (conversation_->has_more()) continue_soon();
      apply_reading();
      watch();
    });
  }

  void apply_reading() {
    const bool reads = conversation_
                           ? conversation_->is_over() || (server_reads_ && conversation_->reads_on())
                           : server_reads_;
    if (reads != std::exchange(reads_, reads)) behind_->read_on(reads);
  }

  // One wait for whichever time comes next; a time that moves away is looked at when the earlier one is over.
  void watch() {
    const auto until = conversation_->until();
    if (until == Conversation::TimePoint::max() || until >= watched_until_) return;
    watched_until_ = until;
    timer_.expires_at(until);
    timer_.async_wait([weak = weak_from_this()](const std::error_code& cancelled) {
      const auto self = weak.lock();
      if (!cancelled && self && self->user_ != nullptr) self->on_time();
    });
  }
  void on_time() {
    watched_until_ = Conversation::TimePoint::max();
    const auto now = Clock::now();
    if (conversation_->is_over() && now >= conversation_->until())
      return give_up("an HTTP client did not close a connection that had ended");
    guard([&] { conversation_->on_time(now); });
    send();
  }

  asio::io_context& io_;
  const TransportPtr behind_;
  const GatewayTerms terms_;
  TransportUser* user_ = nullptr;
  bool speaks_frames_ = false;
  Bytes early_;                                 // what the server said before the client did
  std::unique_ptr<Conversation> conversation_;  // with a client that speaks HTTP
  bool server_reads_ = true, reads_ = true;
  bool output_ends_ = false;   // the server's
  bool output_ended_ = false;  // the conversation's
  bool busy_ = false;          // the server is at work: what it says is sent afterwards
  bool continues_ = false;
  bool blocked_ = false;  // the transport behind took less than it was offered
  std::size_t settled_ = 0;
  asio::steady_timer timer_;
  Conversation::TimePoint watched_until_ = Conversation::TimePoint::max();
};

}  // namespace

TransportPtr make_gateway(asio::io_context& io, TransportPtr behind, GatewayTerms terms) {
  return std::make_shared<Gateway>(io, std::move(behind), std::move(terms));
}

}  // namespace weir::rpc::http
