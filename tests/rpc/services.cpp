#include "tests/rpc/services.hpp"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

namespace shop {

using weir::rpc::Context;
using weir::rpc::Errc;
using weir::rpc::Result;

Waits waits;

namespace {
// Lets others run first.
asio::awaitable<void> turn() { co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable); }
}  // namespace

std::string echo(std::string text) { return text; }
std::int64_t length(std::string_view text) { return static_cast<std::int64_t>(text.size()); }
std::int32_t add(std::int32_t a, std::int32_t b) { return a + b; }
void nothing() {}
Order place(Order order) { return order; }

asio::awaitable<Order> place_later(Order order, Context&) {
  co_await turn();
  co_return order;
}

asio::awaitable<void> wait_for_ever(Context& context) {
  ++waits.started;
  asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  try {
    co_await timer.async_wait(asio::use_awaitable);
  } catch (const std::system_error&) {
    waits.cancelled += context.cancelled() ? 1 : 0;
    throw;
  }
}

Result<std::int32_t> divide(std::int32_t a, std::int32_t b) {
  if (b == 0) return weir::rpc::fail(Errc::bad_arguments, "division by zero: pass another divisor");
  return a / b;
}

asio::awaitable<Result<std::int32_t>> divide_later(std::int32_t a, std::int32_t b) {
  co_await turn();
  co_return divide(a, b);
}

std::string throws(std::string what) { throw std::runtime_error(what); }

asio::awaitable<std::string> throws_later(std::string what) {
  co_await turn();
  throw std::runtime_error(what);
}

std::uint64_t reflect(Context& context) {
  context.reply_attachment = std::move(context.attachment);
  return context.reply_attachment.size();
}

asio::awaitable<std::uint64_t> reflect_later(Context& context) {
  co_await turn();
  co_return reflect(context);
}

std::string caller(Context& context) { return context.peer_certificate(); }

std::string sized(std::uint32_t bytes) { return std::string(bytes, 'x'); }

}  // namespace shop
