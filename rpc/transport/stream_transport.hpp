// A transport over an asio::ssl::stream, whatever is below it: TLS on TCP or on RDMA.
//
// One read is always under way while reading is on; what is written is copied into a block of at most 64 KiB,
// one at a time, which TLS would copy anyway. Operations keep the transport alive until they end.
//
// Its output ends with TLS's close_notify. TLS is not read any more then: OpenSSL refuses data once it waits
// for the peer's. What the peer still sends is read from below, and dropped. A peer that ends its own output
// before that is written to nevertheless.
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <asio/ssl/error.hpp>
#include <memory>
#include <utility>

#include "rpc/transport/transport.hpp"

namespace weir::rpc {

// The peer did not take our certificate. With TLS 1.3 a client hears of it when its own handshake is over
// already and its first calls are on their way: the server has read none of them (RFC 8446, 4.4.2.4, 6.2).
bool is_refusal(const std::error_code& error);

template <class Stream>
class StreamTransport final : public Transport, public std::enable_shared_from_this<StreamTransport<Stream>> {
 public:
  StreamTransport(Stream stream, std::string peer, std::string certificate)
      : stream_(std::move(stream)), peer_(std::move(peer)), certificate_(std::move(certificate)) {}

  void start(TransportUser& user) override {
    user_ = &user;
    read();
  }

  std::size_t write(std::span<const asio::const_buffer> pieces) override {
    if (writing_) {
      full_ = true;
      return 0;
    }
    std::size_t staged = 0, offered = 0;
    for (const asio::const_buffer& piece : pieces) {
      offered += piece.size();
      const std::size_t part = std::min(piece.size(), out_.size() - staged);
      std::memcpy(out_.data() + staged, piece.data(), part);
      staged += part;
    }
    full_ = staged < offered;
    send(0, staged);
    return staged;
  }

  void read_on(bool on) override {
    reading_ = on;
    read();
  }

  bool end_output() override {
    output_ends_ = true;
    notify_close();
    return false;
  }

  void close() override {
    user_ = nullptr;
    std::error_code ignored;
    stream_.lowest_layer().close(ignored);
  }

  std::string peer() const override { return peer_; }
  std::string peer_certificate() const override { return certificate_; }

 private:
  void read() {
    if (!reading_ || read_under_way_ || notified_ || input_ended_ || user_ == nullptr) return;
    read_under_way_ = true;
    stream_.async_read_some(asio::buffer(in_),
                            [self = this->shared_from_this()](std::error_code error, std::size_t n) {
                              self->read_under_way_ = false;
                              if (self->user_ != nullptr && n > 0)
                                self->user_->received(std::span(self->in_).first(n));
                              if (self->user_ != nullptr) self->user_->round_ended();
                              if (self->output_ends_ && !is_the_end(error)) return self->notify_close();
                              error ? self->input_ended(error) : self->read();
                            });
  }

  void input_ended(const std::error_code& error) {
    const bool may_read = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
    const bool has_more = user_ != nullptr && (user_->writes_on() || (output_ends_ && writing_));
    if (!may_read || !has_more) return lose(error);
    input_ended_ = true;
  }

  // Cancelled, or refused by TLS: there may still be something below.
  static bool is_the_end(const std::error_code& error) {
    return error && error != asio::error::operation_aborted &&
           error.category() != asio::error::get_ssl_category();
  }

  // When nothing is written or read any more.
  void notify_close() {
    if (user_ == nullptr || writing_ || notified_) return;
    if (read_under_way_) return stream_.lowest_layer().cancel();
    notified_ = true;
    stream_.async_shutdown([self = this->shared_from_this()](std::error_code) { self->read_below(); });
  }

  void read_below() {
    if (user_ == nullptr) return;
    stream_.next_layer().async_read_some(
        asio::buffer(in_), [self = this->shared_from_this()](std::error_code error, std::size_t n) {
          if (self->user_ != nullptr && n > 0) self->user_->received(std::span(self->in_).first(n));
          error ? self->lose(error) : self->read_below();
        });
  }

  void send(std::size_t from, std::size_t size) {
    writing_ = true;
    stream_.async_write_some(
        asio::buffer(out_.data() + from, size - from),
        [self = this->shared_from_this(), from, size](std::error_code error, std::size_t n) {
          self->writing_ = false;
          if (error && !self->read_under_way_) return self->lose(error);
          if (self->user_ == nullptr || error) return;  // reading says why
          if (from + n < size) return self->send(from + n, size);
          if (self->output_ends_) return self->notify_close();
          if (std::exchange(self->full_, false)) self->user_->writable();
        });
  }

  void lose(std::error_code error) {
    TransportUser* user = user_;
    close();
    if (user == nullptr) return;
    if (is_refusal(error))
      return user->ended({Errc::tls, peer_ + " refused this end's certificate: " + error.message() +
                                         "; show one that it takes"});
    user->ended({Errc::connection_lost, peer_ + ": " + error.message()});
  }

  Stream stream_;
  const std::string peer_;
  const std::string certificate_;
  TransportUser* user_ = nullptr;
  bool reading_ = true;
  bool read_under_way_ = false;
  bool input_ended_ = false;  // by a peer that may still read
  bool writing_ = false;
  bool full_ = false;
  bool output_ends_ = false;
  bool notified_ = false;  // close_notify is on its way
  std::array<std::byte, 64 << 10> in_;
  std::array<std::byte, 64 << 10> out_;
};

}  // namespace weir::rpc
