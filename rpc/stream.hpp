// A function's ends of a stream: parameters that it reads what the caller writes from, and writes to it with.
//
//   asio::awaitable<std::int64_t> total(rpc::Reader<std::int32_t> in) {
//     std::int64_t sum = 0;
//     while (auto number = co_await in.read()) sum += *number;
//     co_return sum;
//   }
//   asio::awaitable<void> ticks(std::uint32_t count, rpc::Writer<Tick> out) {
//     for (Tick tick; tick.number < count; ++tick.number)
//       if (!co_await out.write(tick)) break;
//   }
//
// A function may have both. The client half-closes its direction, which a Reader sees as Errc::end_of_stream;
// the function ends the stream when it returns, with its result or its error; after an item that is not of
// the stream's type, with that error. write() waits while the peer has not read enough (stream_channel.hpp);
// when the call is cancelled or its connection ends, what waits ends with that cause, and what the function
// awaits from then on throws operation_aborted, as in any coroutine that was cancelled.
//
// Both are handles, cheap to copy, usable until the function returns and after that without effect. One
// coroutine may read while another writes. T owns what it holds: no views. Threading: the connection's
// thread.
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <type_traits>

#include "rpc/codec/codec.hpp"
#include "rpc/codec/method.hpp"
#include "rpc/link/stream_channel.hpp"

namespace weir::rpc {

template <class T, class C>
asio::awaitable<Result<T>> read_item(std::shared_ptr<StreamChannel> channel, Errc wrong_type) {
  static_assert(std::is_same_v<T, typename OwnedBy<T>::type>, "what is read from a stream owns its memory");
  if (!channel->readable()) {
    Result<void> came = co_await channel->wait_readable();
    if (!came) co_return std::unexpected(std::move(came.error()));
  }
  Result<T> value;
  DecodeRoom room = channel->decoding();
  const Result<void> read = read_body<C>(channel->front(), *value, room);
  channel->pop();
  if (read) co_return value;
  const Error why = read.error().code == Errc::too_large
                        ? read.error()
                        : Error{wrong_type, "an item is not of the stream's type: " + read.error().what};
  channel->spoil(why);
  co_return std::unexpected(why);
}

// Encodes before it returns: the value need not stay.
template <class C, class T>
[[nodiscard]] asio::awaitable<Result<void>> write_item(StreamChannel& channel, const T& value) {
  Bytes held;
  const BodyPlace body = channel.begin_write(held, body_size<C>(value));
  try {
    C::write(body, value);
  } catch (...) {
    channel.drop_write();
    throw;
  }
  return channel.end_write(std::move(held));
}

template <class T, class C>
class Reader {
 public:
  explicit Reader(std::shared_ptr<StreamChannel> channel) : channel_(std::move(channel)) {}
  // The next value; Errc::end_of_stream after the last.
  [[nodiscard]] asio::awaitable<Result<T>> read() { return read_item<T, C>(channel_, Errc::bad_arguments); }

 private:
  std::shared_ptr<StreamChannel> channel_;
};

template <class T, class C>
class Writer {
 public:
  explicit Writer(std::shared_ptr<StreamChannel> channel) : channel_(std::move(channel)) {}
  // Waits for room first, if there is none.
  [[nodiscard]] asio::awaitable<Result<void>> write(const T& value) {
    return write_item<C>(*channel_, value);
  }

 private:
  std::shared_ptr<StreamChannel> channel_;
};

}  // namespace weir::rpc
