#include "rpc/tracing/span_exporter.hpp"

#include <algorithm>
#include <array>
#include <asio/co_spawn.hpp>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/write.hpp>
#include <charconv>

#include "rpc/tracing/otlp_json.hpp"

namespace weir::rpc {
namespace {

constexpr std::size_t max_head_bytes = 4096;  // of an answer: only its first line counts
constexpr int max_pause_doublings = 4;

// The status of "HTTP/1.1 200 OK"; 0: the line has no status.
int status_of(std::string_view answer) {
  constexpr std::size_t code_at = 9, code_size = 3;
  int status = 0;
  if (!answer.starts_with("HTTP/1.") || answer.size() < code_at + code_size) return 0;
  const char* from = answer.data() + code_at;
  const auto [end, error] = std::from_chars(from, from + code_size, status);
  return error == std::errc() && end == from + code_size ? status : 0;
}

struct Way {
  explicit Way(asio::io_context& io) : socket(io), resolver(io) {}
  asio::ip::tcp::socket socket;
  asio::ip::tcp::resolver resolver;
};

bool is_worth_another_attempt(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

SpanExporter::SpanExporter(asio::io_context& io, ExportOptions options)
    : io_(io), options_(std::move(options)), pause_(io) {}

void SpanExporter::start() {
  asio::co_spawn(io_, run(shared_from_this()), [](const std::exception_ptr&) {});
}

void SpanExporter::stop() {
  stopped_ = true;
  pause_.cancel();
}

void SpanExporter::record(Span span) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= options_.max_waiting) {
      ++stats_.dropped;
      return;
    }
    waiting_.push_back(std::move(span));
    wake = !woken_ && waiting_.size() >= options_.max_batch;
    woken_ = woken_ || wake;
  }
  if (wake)
    asio::post(io_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->pause_.cancel();
    });
}

std::vector<Span> SpanExporter::take_batch() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  const auto end =
      waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), options_.max_batch));
  std::vector<Span> batch(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return batch;
}

void SpanExporter::put_back(std::vector<Span> batch) {
  const std::lock_guard lock(mutex_);
  const std::size_t room = options_.max_waiting - std::min(waiting_.size(), options_.max_waiting);
  stats_.dropped += batch.size() - std::min(batch.size(), room);
  batch.resize(std::min(batch.size(), room));
  waiting_.insert(waiting_.begin(), std::make_move_iterator(batch.begin()),
                  std::make_move_iterator(batch.end()));
}

ExportStats SpanExporter::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

asio::awaitable<Result<int>> SpanExporter::post(std::string body) {
  // Shared with the timer's handler, which may be queued when this ends.
  const auto way = std::make_shared<Way>(io_);
  asio::ip::tcp::socket& socket = way->socket;
  asio::steady_timer late(io_, options_.timeout);
  late.async_wait([way](const std::error_code& cancelled) {
    if (cancelled) return;
    way->resolver.cancel();
    std::error_code ignored;
    way->socket.close(ignored);
  });
  std::error_code error;
  const auto into_error = [&error] { return asio::redirect_error(asio::use_awaitable, error); };
  const auto found = co_await way->resolver.async_resolve(options_.host, options_.port, into_error());
  if (!error) co_await asio::async_connect(socket, found, into_error());
  if (!error) {
    std::string request = "POST " + options_.path + " HTTP/1.1\r\nHost: " + options_.host + ":" +
                          options_.port +
                          "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n";
    const std::array buffers{asio::buffer(request), asio::buffer(body)};
    co_await asio::async_write(socket, buffers, into_error());
  }
  std::string answer;
  std::array<char, max_head_bytes> room;
  while (!error && answer.find('\n') == answer.npos && answer.size() < max_head_bytes) {
    const std::size_t came = co_await socket.async_read_some(asio::buffer(room), into_error());
    answer.append(room.data(), came);
  }
  const int status = status_of(answer);
  if (status != 0) co_return status;
  const std::string where = "the collector at " + options_.host + ":" + options_.port;
  if (error) co_return fail(Errc::unreachable, where + " cannot be reached: " + error.message());
  co_return fail(Errc::protocol, where + " does not answer with HTTP/1.1");
}

asio::awaitable<SpanExporter::Outcome> SpanExporter::send_a_batch(std::shared_ptr<SpanExporter> self) {
  std::vector<Span> batch = self->take_batch();
  if (batch.empty()) co_return Outcome::taken;
  std::string body = otlp_json(self->options_.resource, batch);
  const Result<int> status = co_await self->post(std::move(body));
  const bool taken = status && *status / 100 == 2;
  const bool later = !status || is_worth_another_attempt(*status);
  {
    const std::lock_guard lock(self->mutex_);
    if (taken) self->stats_.sent += batch.size();
    if (!taken && !later) self->stats_.dropped += batch.size();
    self->stats_.last_error = taken    ? ""
                              : status ? "the collector answered " + std::to_string(*status)
                                       : status.error().what;
  }
  if (later) self->put_back(std::move(batch));
  co_return taken ? Outcome::taken : later ? Outcome::later : Outcome::refused;
}

asio::awaitable<void> SpanExporter::run(std::shared_ptr<SpanExporter> self) {
  int failures = 0;
  while (!self->stopped_) {
    self->pause_.expires_after(self->options_.every * (1 << std::min(failures, max_pause_doublings)));
    std::error_code woken;
    co_await self->pause_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    if (self->stopped_) break;
    const bool sent = co_await self->flush();
    failures = sent ? 0 : failures + 1;
  }
}

asio::awaitable<bool> SpanExporter::flush() {
  const std::shared_ptr<SpanExporter> self = shared_from_this();
  bool well = true;
  // Each round takes what waits at its beginning, so spans that come meanwhile do not keep it for ever.
  std::size_t rounds = 0;
  {
    const std::lock_guard lock(mutex_);
    rounds = (waiting_.size() + options_.max_batch - 1) / options_.max_batch;
  }
  for (; rounds > 0; --rounds) {
    const Outcome outcome = co_await send_a_batch(self);
    if (outcome != Outcome::taken) well = false;
    if (outcome == Outcome::later) break;
  }
  co_return well;
}

}  // namespace weir::rpc
