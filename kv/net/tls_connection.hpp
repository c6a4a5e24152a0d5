// A connection with TLS, as server or as client, over any stream that models Asio's: a TCP
// socket or an RDMA stream.
//
// After the handshake one read is pending, unless the session has no appetite, and at most one write.
// close() cancels both. The object and the session's queue stay in use until their completions have
// run; finished() reports that.
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <asio/ssl.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "kv/net/connection.hpp"
#include "kv/net/socket_connection.hpp"
#include "kv/net/tls_settings.hpp"
#include "transport/handshake_places.hpp"
#include "transport/handshake_progress.hpp"

namespace weir::kv {

template <class Stream>
class TlsConnection final : public Connection {
 public:
  // `after_input` runs after received bytes have been handled: the end of a round. `place` is given back
  // when the handshake is over. Until then it may have to leave for another client's; the round then ends
  // with what made it leave.
  TlsConnection(Stream stream, std::shared_ptr<TlsSettings> tls, SocketNames names,
                std::function<void()> after_input, transport::HandshakePlaces::Place place = {})
      : tls_(std::move(tls)),
        stream_(std::move(stream), tls_->context()),
        names_(std::move(names)),
        after_input_(std::move(after_input)),
        place_(std::move(place)) {}

  void start(Session& session) override {
    session_ = &session;
    place_.may_leave(transport::source_of_peer(names_.peer),
                     [this](transport::Newcomers::Lack) { return leave(); });
    progress_.emplace(stream_.native_handle(), place_);
    ++under_way_;
    stream_.async_handshake(tls_->side(), [this](const std::error_code& error) {
      --under_way_;
      progress_.reset();
      place_.give_back();
      if (error) {
        lose(error);
      } else if (session_ != nullptr) {
        ready_ = true;
        flush();
        read();
      }
      end_round();
    });
  }

  void flush() override {
    if (!ready_ || writing_ || session_ == nullptr) return;
    ReplyQueue& queue = session_->outgoing();
    if (session_ == nullptr) return;
    if (queue.empty()) {
      session_->drained();
      return read();
    }
    iovec piece{};
    queue.gather(&piece, 1);
    writing_ = true;
    ++under_way_;
    stream_.async_write_some(asio::const_buffer(piece.iov_base, piece.iov_len),
                             [this](const std::error_code& error, std::size_t bytes) {
                               --under_way_;
                               writing_ = false;
                               if (error) {
                                 lose(error);
                               } else if (session_ != nullptr) {
                                 session_->outgoing().consume(bytes);
                                 flush();
                               }
                               end_round();
                             });
  }

  void close() override {
    if (session_ == nullptr && closed_) return;
    session_ = nullptr;
    if (!std::exchange(closed_, true) && ready_ && !writing_) notify_close();
    asio::error_code ignored;
    stream_.lowest_layer().close(ignored);
  }
  bool established() const override { return ready_; }
  bool finished() const override { return under_way_ == 0; }

  std::string_view kind() const override { return names_.kind; }
  std::string peer_address() const override { return names_.peer; }
  std::string local_address() const override { return names_.local; }
  bool local() const override { return names_.same_host; }

 private:
  void read() {
    if (session_ == nullptr || reading_ || peer_ended_) return;
    const std::size_t most = session_->appetite();
    if (most == 0) return;  // flush() will call this again
    const std::span<char> wanted = session_->wanted();
    const bool direct = !wanted.empty();
    const asio::mutable_buffer place =
        asio::buffer(direct ? asio::buffer(wanted.data(), wanted.size()) : asio::buffer(received_), most);
    reading_ = true;
    ++under_way_;
    stream_.async_read_some(place, [this, direct](const std::error_code& error, std::size_t bytes) {
      --under_way_;
      reading_ = false;
      if (session_ != nullptr && bytes > 0) {
        direct ? session_->filled(bytes) : session_->received(std::span(received_.data(), bytes));
      }
      // With its close_notify, or by the end of the stream below: what came before is whole either way.
      const bool ended = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
      if (ended && session_ != nullptr) peer_ended_ = session_->peer_ended();
      if (!peer_ended_) error ? lose(error) : read();
      end_round();
    });
  }

  // Tells the peer that nothing was cut off (RFC 8446, 6.1). It goes out at once if the stream has room for
  // it, and nobody waits for the peer's answer: close() ends the operation.
  void notify_close() {
    ++under_way_;
    stream_.async_shutdown([this](const std::error_code&) {
      --under_way_;
      end_round();
    });
  }

  // May free this object, so call a copy of the function.
  void end_round() const {
    const auto after_input = after_input_;
    after_input();
  }

  transport::Newcomers::Room leave() {
    place_.give_back();
    lose("others need its place for their handshakes");
    return transport::Newcomers::Room::now;
  }

  void lose(const std::error_code& error) { lose(error.message()); }
  void lose(const std::string& why) {
    Session* session = session_;
    close();
    if (session != nullptr) session->lost(why);
  }

  std::shared_ptr<TlsSettings> tls_;
  asio::ssl::stream<Stream> stream_;
  SocketNames names_;
  std::function<void()> after_input_;
  transport::HandshakePlaces::Place place_;
  std::optional<transport::HandshakeProgress> progress_;  // while the handshake is under way
  Session* session_ = nullptr;
  bool ready_ = false;  // the handshake is over
  bool writing_ = false;
  bool reading_ = false;
  bool closed_ = false;
  bool peer_ended_ = false;  // it sends no more, and still gets replies
  int under_way_ = 0;
  std::array<char, 16 * 1024> received_;
};

}  // namespace weir::kv
