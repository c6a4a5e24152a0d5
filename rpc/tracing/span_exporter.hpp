// Spans that wait for the collector, and the coroutine that takes them there: OTLP/HTTP with JSON, one POST a
// batch.
//
// Bounded: at most `max_waiting` spans wait, and one more is dropped and counted. A collector that cannot be
// reached, or that answers 429, 502, 503 or 504, gets the batch again after a pause that grows; other answers
// than 2xx drop it (OTLP, "Failures"). Calls never wait for any of this.
//
// Ownership: shared by the interceptors and its coroutine, which ends after stop(). Threading: record() from
// any thread; everything else on the io_context's.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "rpc/error.hpp"
#include "rpc/tracing/span.hpp"

namespace weir::rpc {

struct ExportOptions {
  std::string host;
  std::string port;
  std::string path = "/v1/traces";
  std::vector<SpanAttribute> resource;
  std::chrono::milliseconds every{5000};  // spans wait so long, or until a batch is full
  std::chrono::milliseconds timeout{10'000};
  std::size_t max_batch = 512;
  std::size_t max_waiting = 8192;
};

struct ExportStats {
  std::uint64_t sent = 0;     // that the collector took
  std::uint64_t dropped = 0;  // for want of room, or that it refused
  std::string last_error;     // of an attempt to send; empty after one that went well
};

class SpanExporter : public std::enable_shared_from_this<SpanExporter> {
 public:
  SpanExporter(asio::io_context& io, ExportOptions options);
  void start();
  // Ends the coroutine; spans that wait are lost. flush() first.
  void stop();

  void record(Span span);
  // Sends what waits now, once; false: some of it could not be sent.
  asio::awaitable<bool> flush();
  ExportStats stats() const;

 private:
  enum class Outcome { taken, refused, later };

  static asio::awaitable<void> run(std::shared_ptr<SpanExporter> self);
  static asio::awaitable<Outcome> send_a_batch(std::shared_ptr<SpanExporter> self);
  asio::awaitable<Result<int>> post(std::string body);  // the status of HTTP
  std::vector<Span> take_batch();
  void put_back(std::vector<Span> batch);

  asio::io_context& io_;
  const ExportOptions options_;
  mutable std::mutex mutex_;  // of the next three
  std::deque<Span> waiting_;
  ExportStats stats_;
  bool woken_ = false;  // a full batch waits
  asio::steady_timer pause_;
  bool stopped_ = false;
};

}  // namespace weir::rpc
