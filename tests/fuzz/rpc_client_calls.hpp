// What a program does with its rpc client: calls of every shape, streams, and memory
// that it lends to them.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpc/client.hpp"
#include "tests/fuzz/line_play.hpp"
#include "tests/fuzz/rpc_frame_lines.hpp"
#include "tests/rpc/services.hpp"

namespace feed {
// Never defined: it is the input that answers.
asio::awaitable<std::uint32_t> shout(std::string suffix, weir::rpc::Reader<std::string> in,
                                     weir::rpc::Writer<std::string> out);
}  // namespace feed

namespace weir::fuzz {

using rpc::as_bytes;
using rpc::Buffer;
using rpc::CallOptions;
using rpc::Client;
using rpc::Result;
using rpc::StreamOf;

// A call of the program's, with what it lends: memory that goes when the call ends.
struct Lent {
  static inline int alive = 0;
  explicit Lent(const Words& words) {
    ++alive;
    for (const std::string_view word : words) {
      if (word.starts_with(":a="))
        attachment.assign(std::min<std::uint64_t>(number_of(word.substr(3)), 70'000), 'c');
      if (word.starts_with(":into=")) into.resize(std::min<std::uint64_t>(number_of(word.substr(6)), 70'000));
      if (word.starts_with(":t="))
        options.timeout = std::chrono::microseconds(number_of(word.substr(3)) & 0xffffff);
      if (word == ":take") options.reply_attachment = &taken;
      if (word == ":twice") options.idempotent = true;
    }
    options.attachment = as_bytes(attachment);
    options.reply_into = into;
  }
  ~Lent() { --alive; }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  std::string attachment;
  std::vector<std::byte> into;
  Buffer taken;
  CallOptions options;
};

// Its stream goes before what is lent for it.
struct HeldStream {
  std::shared_ptr<Lent> lent;
  StreamOf<feed::shout> stream;
};
using StreamPtr = std::shared_ptr<HeldStream>;

struct Call {
  bool ended = false;
  asio::cancellation_signal signal;
  std::optional<asio::awaitable<Result<std::string>>> waiting;  // to be awaited
  StreamPtr stream;
  bool reading = false, writing = false, finishing = false;
};
using CallPtr = std::shared_ptr<Call>;

// Begins a call that is awaited later, or not at all.
inline asio::awaitable<Result<std::string>> started(Client& client, const Words& words,
                                                    const std::shared_ptr<Lent>& lent) {
  const std::string text = words.size() > 1 ? std::string(words[1]) : std::string();
  return client.call<shop::echo>(lent->options, text);
}

inline asio::awaitable<void> finish_later(asio::awaitable<Result<std::string>> call, std::shared_ptr<Lent>) {
  co_await std::move(call);
}
inline asio::awaitable<void> echo(std::shared_ptr<Client> client, std::string text,
                                  std::shared_ptr<Lent> lent) {
  co_await client->call<shop::echo>(lent->options, text);
}
inline asio::awaitable<void> place(std::shared_ptr<Client> client, std::shared_ptr<Lent> lent) {
  shop::Order order;
  order.stock["a"] = 1;
  co_await client->call<shop::place>(lent->options, order);
}
inline asio::awaitable<void> nothing(std::shared_ptr<Client> client, std::shared_ptr<Lent> lent) {
  co_await client->call<shop::nothing>(lent->options);
}
inline asio::awaitable<void> reflect(std::shared_ptr<Client> client, std::shared_ptr<Lent> lent) {
  co_await client->call<shop::reflect>(lent->options);
  [[maybe_unused]] static volatile char read;
  for (const char c : lent->taken.text()) read = c;
}
// Calls again and again, within the completion of the call before.
inline asio::awaitable<void> chase(std::shared_ptr<Client> client, std::shared_ptr<Lent> lent) {
  for (int i = 0; i < 4 && client->is_open(); ++i) co_await client->call<shop::nothing>(lent->options);
}
inline asio::awaitable<void> ping(std::shared_ptr<Client> client, std::chrono::microseconds timeout) {
  co_await client->ping(timeout);
}
inline asio::awaitable<void> read(CallPtr call, StreamPtr held, std::uint64_t times) {
  for (bool more = true; more && times > 0; --times) more = (co_await held->stream.read()).has_value();
  call->reading = false;
}
inline asio::awaitable<void> write(CallPtr call, StreamPtr held, std::string text) {
  co_await held->stream.write(text);
  call->writing = false;
}
inline asio::awaitable<void> finish(CallPtr call, StreamPtr held) {
  co_await held->stream.finish();
  call->finishing = true;
}

}  // namespace weir::fuzz
