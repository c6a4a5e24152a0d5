// Notifies the user of a connection: waiting operations and callbacks, run from the engine's round.
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <utility>

#include "rdma/stream/connection.hpp"

namespace weir::rdma {

bool Connection::can_write() const {
  return state_ == State::established && peer_window_.room() > 0 && send_queue_.room_for_data() &&
         send_queue_.stage_room() > 0;
}

void Connection::notify() {
  dirty_ = false;
  if (abandoned_) return;
  notify_connector();
  if (!abandoned_) notify_reader();
  if (!abandoned_) notify_writer();
}

void Connection::notify_reader() {
  if (read_op_ && (can_read() || ended())) {
    TransferOpPtr op = std::exchange(read_op_, nullptr);
    const std::size_t bytes = op->transfer(*this);
    return op.release()->complete(bytes > 0 ? std::error_code() : cause_.code, bytes);
  }
  if (!readable_callback_ || !(fresh_input_ || (ended() && !end_told_))) return;
  fresh_input_ = false;
  end_told_ = ended();
  readable_callback_();
}

void Connection::notify_writer() {
  if (write_op_ && (can_write() || ended())) {
    const std::size_t bytes = ended() ? 0 : write_op_->transfer(*this);
    if (bytes > 0 || ended())
      std::exchange(write_op_, nullptr)
          .release()
          ->complete(bytes > 0 ? std::error_code() : cause_.code, bytes);
    return;
  }
  if (!writable_callback_ || !wants_writable_ || !can_write()) return;
  wants_writable_ = false;
  writable_callback_();
}

void Connection::on_readable(Callback callback) {
  readable_callback_.set(std::move(callback));
  if (!readable_callback_ || !(can_read() || ended())) return;
  fresh_input_ = true;
  end_told_ = false;
  mark_dirty();
}

void Connection::on_writable(Callback callback) {
  writable_callback_.set(std::move(callback));
  if (writable_callback_ && wants_writable_ && can_write()) mark_dirty();
}

void Connection::cancel_read() {
  if (!read_op_) return;
  asio::post(engine_.io(), [op = std::exchange(read_op_, nullptr)]() mutable {
    op.release()->complete(asio::error::operation_aborted, 0);
  });
}

void Connection::cancel_write() {
  if (!write_op_) return;
  asio::post(engine_.io(), [op = std::exchange(write_op_, nullptr)]() mutable {
    op.release()->complete(asio::error::operation_aborted, 0);
  });
}

void Connection::destroy_ops() {
  ConnectionLife::destroy_ops();
  read_op_.reset();
  write_op_.reset();
  readable_callback_.set(nullptr);
  writable_callback_.set(nullptr);
}

}  // namespace weir::rdma
