#include "rdma/stream.hpp"

namespace weir::rdma {

void Stream::close() {
  if (Connection* connection = std::exchange(connection_, nullptr); connection != nullptr)
    connection->abandon();
}

void Stream::cancel() {
  if (connection_ == nullptr) return;
  connection_->cancel_connect();
  connection_->cancel_read();
  connection_->cancel_write();
}

const Error& Stream::error() const {
  return connection_ != nullptr ? connection_->end_cause() : never_connected_;
}

std::error_code Stream::end() const {
  if (connection_ == nullptr) return Errc::closed;
  return connection_->ended() ? connection_->end_cause().code : std::error_code();
}

void Stream::on_readable(Callback callback) {
  if (connection_ != nullptr) connection_->on_readable(std::move(callback));
}

void Stream::on_writable(Callback callback) {
  if (connection_ != nullptr) connection_->on_writable(std::move(callback));
}

// For an operation that cannot start: there is no connection, or an earlier operation is still waiting.
std::error_code Stream::transfer_error(bool busy) const {
  if (busy) return asio::error::already_started;
  return Errc::closed;
}

}  // namespace weir::rdma
