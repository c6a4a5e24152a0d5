// A waiting send or receive of a channel, stored for one completion handler (engine/io_op.hpp).
#pragma once

#include <array>
#include <type_traits>
#include <vector>

#include "rdma/channel/channel_connection.hpp"
#include "rdma/engine/io_op.hpp"

namespace weir::rdma {

// Any buffer sequence as an array: no allocation for up to 16 buffers.
class FlatMessage {
 public:
  FlatMessage() = default;
  template <class ConstBufferSequence>
  explicit FlatMessage(const ConstBufferSequence& buffers) {
    auto at = asio::buffer_sequence_begin(buffers);
    const auto end = asio::buffer_sequence_end(buffers);
    for (; at != end; ++at) {
      if (used_ < few_.size())
        few_[used_] = *at;
      else if (used_ == few_.size())
        many_.assign(few_.begin(), few_.end());
      if (used_ >= few_.size()) many_.push_back(*at);
      ++used_;
    }
  }
  std::span<const asio::const_buffer> pieces() const {
    return used_ > few_.size() ? std::span<const asio::const_buffer>(many_) : std::span(few_).first(used_);
  }

 private:
  std::array<asio::const_buffer, 16> few_;
  std::vector<asio::const_buffer> many_;
  std::size_t used_ = 0;
};

template <class Handler>
class WaitingSend final : public HandlerOp<SendOp, Handler, std::error_code> {
 public:
  WaitingSend(Handler handler, const asio::io_context::executor_type& io, FlatMessage message)
      : HandlerOp<SendOp, Handler, std::error_code>(std::move(handler), io), message_(std::move(message)) {}
  std::span<const asio::const_buffer> pieces() const override { return message_.pieces(); }

 private:
  void release(Handler& handler) override { free_op(this, handler); }
  FlatMessage message_;
};

template <class Handler>
class WaitingReceive final
    : public HandlerOp<IoOp<std::error_code, Message>, Handler, std::error_code, Message> {
 public:
  using HandlerOp<IoOp<std::error_code, Message>, Handler, std::error_code, Message>::HandlerOp;

 private:
  void release(Handler& handler) override { free_op(this, handler); }
};

}  // namespace weir::rdma
