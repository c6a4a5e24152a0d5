#include "cli/weir/rpc/rpc_stream.hpp"

#include <unistd.h>

#include <asio/experimental/awaitable_operators.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <cstdio>
#include <optional>

#include "cli/weir/command.hpp"
#include "rpc/json/json_body.hpp"

namespace weir::command {

using rpc::json::BodyOf;
using rpc::json::gives_stream;
using rpc::json::item_from_json;
using rpc::json::json_from_body;
using rpc::json::takes_stream;

std::string said(const rpc::Error& error) { return std::string(name_of(error.code)) + ": " + error.what; }

namespace {

// Sends the lines of standard input as items. It reads them as they come: a terminal or pipe that gives
// nothing blocks only this program.
asio::awaitable<std::optional<std::string>> send_lines(rpc::EncodedStream& stream,
                                                       const std::string& schema) {
  asio::posix::stream_descriptor input(co_await asio::this_coro::executor, dup(STDIN_FILENO));
  std::string buffer;
  for (;;) {
    std::error_code error;
    constexpr std::size_t longest = 16 << 20;
    const std::size_t end = co_await asio::async_read_until(
        input, asio::dynamic_buffer(buffer, longest), '\n', asio::redirect_error(asio::use_awaitable, error));
    std::string line = buffer.substr(0, error ? buffer.size() : end);
    buffer.erase(0, line.size());
    if (line.find_first_not_of(" \t\r\n") != std::string::npos) {
      const auto item = item_from_json(line, schema);
      if (!item) co_return item.error();
      const auto written = co_await stream.write(*item);
      if (!written) co_return std::nullopt;  // the result gives the reason
    }
    if (error) break;
  }
  stream.close_write();
  co_return std::nullopt;
}

asio::awaitable<std::optional<std::string>> print_items(rpc::EncodedStream& stream,
                                                        const std::string& schema) {
  while (const auto item = co_await stream.read()) {
    const auto line = json_from_body(*item, schema, BodyOf::item);
    if (!line) co_return line.error();
    std::printf("%s\n", line->c_str());
    std::fflush(stdout);
  }
  co_return std::nullopt;
}

}  // namespace

asio::awaitable<int> run_stream(rpc::EncodedStream stream, std::string schema) {
  using namespace asio::experimental::awaitable_operators;
  std::optional<std::string> sent, printed;
  if (!takes_stream(schema)) {
    stream.close_write();
    printed = co_await print_items(stream, schema);
  } else if (!gives_stream(schema)) {
    sent = co_await send_lines(stream, schema);
  } else {
    // The function may end the stream before standard input ends.
    const auto both = [&]() -> asio::awaitable<void> {
      sent = co_await send_lines(stream, schema);
      if (sent) stream.cancel();
      asio::steady_timer for_ever(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
      co_await for_ever.async_wait(asio::use_awaitable);
    };
    const auto first = co_await (print_items(stream, schema) || both());
    if (first.index() == 0) printed = std::get<0>(first);
  }
  if (sent || printed) co_return complain("rpc", sent ? *sent : *printed, sent ? 2 : 1);
  const auto result = co_await stream.finish();
  if (!result) co_return complain("rpc", said(result.error()), 1);
  constexpr std::byte nil{0xc0};
  if (gives_stream(schema) && result->size() == 1 && result->front() == nil) co_return 0;
  const auto json = json_from_body(*result, schema, BodyOf::result);
  if (!json) co_return complain("rpc", json.error(), 1);
  std::printf("%s\n", json->c_str());
  co_return 0;
}

}  // namespace weir::command
