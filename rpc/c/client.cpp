// A client for C programs: an rpc::Client in a thread of its own; calls may come from any thread.
//
// A call is a ForeignCall: the caller's thread makes it, then it belongs to the loop until its reply is
// handed over. Each call ends exactly once; abandon() ends those that the connection did not.
#include <sys/eventfd.h>
#include <unistd.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "rpc/c/loop.hpp"
#include "rpc/c/options.hpp"

struct weir_rpc_reply {
  weir::rpc::Error error;
  bool failed = false;
  std::vector<std::byte> body;
  weir::rpc::Buffer attachment;
  void* user = nullptr;
};

namespace {

using namespace weir::rpc;

constexpr std::byte no_arguments{0x90};  // MessagePack: an empty array

// Delivers a reply to the program's function, to the queue, or to weir_rpc_run.
struct ForeignCall {
  std::uint64_t id = 0;
  std::string method;
  std::vector<std::byte> arguments;
  CallOptions options;
  weir_rpc_done done = nullptr;
  void* user = nullptr;
  std::unique_ptr<weir_rpc_reply> reply = std::make_unique<weir_rpc_reply>();
  asio::cancellation_signal signal;
};

Result<void> check(const weir_rpc_call* call) {
  if (call == nullptr || call->size < sizeof(weir_rpc_call) || call->method == nullptr)
    return fail(Errc::bad_setting, "a call needs its size and a method: begin with WEIR_RPC_CALL");
  if (call->timeout_us < 0) return fail(Errc::bad_setting, "timeout_us is below 0");
  if ((call->flags & ~WEIR_RPC_IDEMPOTENT) != 0 || call->codec > UINT8_MAX)
    return fail(Errc::bad_setting, "flags or a codec that this version of the library does not know");
  return {};
}

}  // namespace

struct weir_rpc_client final : public c::Loop {
 public:
  explicit weir_rpc_client(const weir_rpc_options* options)
      : options_(options != nullptr ? *options : weir_rpc_options()),
        fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  Result<void> connect(const std::string& address) {
    const auto done = std::make_shared<std::promise<Result<void>>>();  // kept alive while the result is set
    auto connected = done->get_future();
    post([&, this, done] {
      const auto engine = c::or_lack([&] { return c::engine_for(io(), address, options_); });
      if (!engine) return done->set_value(std::unexpected(engine.error()));
      options_.connect.transport.engine = *engine;
      if (!options_.token.empty()) options_.connect.token = [this] { return options_.token; };
      asio::co_spawn(io(), dial(address), [done](const std::exception_ptr& thrown, Result<void> result) {
        // Rethrown here, because this thread may hold the last reference.
        if (thrown) result = c::or_lack([&]() -> Result<void> { std::rethrow_exception(thrown); });
        done->set_value(std::move(result));
      });
    });
    return c::or_lack([&] { return connected.get(); });
  }

  std::uint64_t start(const weir_rpc_call* call, weir_rpc_done done, void* user) {
    auto started = std::make_shared<ForeignCall>();
    started->id = next_id_.fetch_add(1, std::memory_order_relaxed);
    started->done = done;
    started->user = user;
    const Result<void> fine = check(call);
    if (fine) copy(*call, *started);
    post([this, started, fine] {
      calls_.emplace(started->id, started);
      if (!fine) return end(*started, std::unexpected(fine.error()));
      // A call cancelled before its first step never reaches end() by itself.
      auto over = [this, started](const std::exception_ptr&) {
        end(*started, fail(Errc::cancelled, "cancelled by the caller"));
      };
      asio::co_spawn(io(), run_call(started),
                     asio::bind_cancellation_slot(started->signal.slot(), std::move(over)));
    });
    return started->id;
  }

  void cancel(std::uint64_t id) {
    post([this, id] {
      const auto found = calls_.find(id);
      if (found == calls_.end()) return;
      const auto call = found->second;  // it may leave the table at once
      call->signal.emit(asio::cancellation_type::terminal);
    });
  }

  bool is_open() {
    return run([this] { return client_ && client_->is_open() && !client_->draining(); });
  }

  void shut_down() {
    post([this] { farewell(); });
  }

  int fd() const { return fd_; }

  std::unique_ptr<weir_rpc_reply> take() {
    const std::lock_guard lock(waiting_mutex_);
    if (waiting_.empty()) return nullptr;
    auto reply = std::move(waiting_.front());
    waiting_.pop_front();
    std::uint64_t count = 0;
    if (waiting_.empty()) static_cast<void>(read(fd_, &count, sizeof count));
    return reply;
  }

 private:
  ~weir_rpc_client() override { ::close(fd_); }

  static void copy(const weir_rpc_call& from, ForeignCall& to) {
    to.method = from.method;
    const auto* bytes = static_cast<const std::byte*>(from.arguments);
    if (bytes != nullptr && from.arguments_size > 0)
      to.arguments.assign(bytes, bytes + from.arguments_size);
    else
      to.arguments.assign(from.codec == WEIR_RPC_MSGPACK ? 1 : 0, no_arguments);
    to.options.codec = static_cast<std::uint8_t>(from.codec);
    to.options.timeout = std::chrono::microseconds(from.timeout_us);
    if (from.attachment != nullptr)
      to.options.attachment = {static_cast<const std::byte*>(from.attachment), from.attachment_size};
    if (from.reply_into != nullptr)
      to.options.reply_into = {static_cast<std::byte*>(from.reply_into), from.reply_into_size};
    to.options.reply_attachment = &to.reply->attachment;
    to.options.idempotent = (from.flags & WEIR_RPC_IDEMPOTENT) != 0;
  }

  asio::awaitable<Result<void>> dial(std::string address) {
    ConnectOptions options = options_.connect;
    auto client = co_await rpc_connect(address, options);
    if (!client) co_return std::unexpected(std::move(client.error()));
    client_.emplace(std::move(*client));
    co_return Result<void>();
  }
  // Calls weir::rpc::connect, which the member function hides.
  static asio::awaitable<Result<Client>> rpc_connect(std::string address, ConnectOptions options) {
    return weir::rpc::connect(std::move(address), std::move(options));
  }

  asio::awaitable<void> run_call(std::shared_ptr<ForeignCall> call) {
    Result<std::vector<std::byte>> result;
    try {
      result = co_await client_->call_encoded(call->method, call->options, call->arguments);
    } catch (const std::system_error&) {  // cancelled before it was sent
      result = fail(Errc::cancelled, "cancelled by the caller");
    }
    if (!result) result = std::unexpected(named(std::move(result.error()), call->method));
    end(*call, std::move(result));
  }

  void end(ForeignCall& call, Result<std::vector<std::byte>> result) {
    const auto node = calls_.extract(call.id);
    if (node.empty()) return;
    auto reply = std::move(call.reply);
    reply->user = call.user;
    if (result) {
      reply->body = std::move(*result);
    } else {
      reply->failed = true;
      reply->error = std::move(result.error());
    }
    if (call.done != nullptr) return call.done(call.user, reply.release());
    const std::lock_guard lock(waiting_mutex_);
    waiting_.push_back(std::move(reply));
    const std::uint64_t one = 1;
    if (waiting_.size() == 1) static_cast<void>(write(fd_, &one, sizeof one));
  }

  void farewell() override {
    if (client_) client_->close();
  }
  void abandon() override {
    while (!calls_.empty()) {
      const auto call = calls_.begin()->second;
      end(*call, fail(Errc::closed, "the client was closed"));
    }
  }

  weir_rpc_options options_;
  std::optional<Client> client_;
  std::unordered_map<std::uint64_t, std::shared_ptr<ForeignCall>> calls_;
  std::atomic<std::uint64_t> next_id_{1};  // no partner: the ids only have to differ
  std::mutex waiting_mutex_;
  std::deque<std::unique_ptr<weir_rpc_reply>> waiting_;  // at most one for each call without `done`
  const int fd_;
};

extern "C" {

int weir_rpc_connect(weir_rpc_client** client, const char* address, const weir_rpc_options* options,
                     weir_rpc_error* error) {
  if (client == nullptr || address == nullptr)
    return c::report(error, {Errc::bad_setting, "client and address may not be NULL"});
  *client = nullptr;
  const auto made = c::or_lack([&] { return Result<weir_rpc_client*>(new weir_rpc_client(options)); });
  if (!made) return c::report(error, made.error());
  if (const Result<void> done = (*made)->connect(address); !done) {
    (*made)->leave();
    return c::report(error, done.error());
  }
  *client = *made;
  return 0;
}

void weir_rpc_close(weir_rpc_client* client) {
  if (client != nullptr) client->leave();
}

void weir_rpc_shutdown(weir_rpc_client* client) { client->shut_down(); }

int weir_rpc_is_open(weir_rpc_client* client) { return client->is_open() ? 1 : 0; }

weir_rpc_reply* weir_rpc_run(weir_rpc_client* client, const weir_rpc_call* call) {
  if (client->in_loop()) {
    auto refused = std::make_unique<weir_rpc_reply>();
    refused->failed = true;
    refused->error = {Errc::bad_setting,
                      "weir_rpc_run in the client's own thread would wait for itself: use weir_rpc_start"};
    return refused.release();
  }
  std::promise<weir_rpc_reply*> done;
  client->start(
      call,
      [](void* waiting, weir_rpc_reply* reply) {
        static_cast<std::promise<weir_rpc_reply*>*>(waiting)->set_value(reply);
      },
      &done);
  return done.get_future().get();
}

uint64_t weir_rpc_start(weir_rpc_client* client, const weir_rpc_call* call, weir_rpc_done done, void* user) {
  return client->start(call, done, user);
}

void weir_rpc_cancel(weir_rpc_client* client, uint64_t call) { client->cancel(call); }

int weir_rpc_fd(weir_rpc_client* client) { return client->fd(); }

weir_rpc_reply* weir_rpc_take(weir_rpc_client* client, void** user) {
  auto reply = client->take();
  if (reply && user != nullptr) *user = reply->user;
  return reply.release();
}

int weir_rpc_reply_code(const weir_rpc_reply* reply) {
  return reply->failed ? static_cast<int>(reply->error.code) : 0;
}

const char* weir_rpc_reply_message(const weir_rpc_reply* reply) { return reply->error.what.c_str(); }

const void* weir_rpc_reply_body(const weir_rpc_reply* reply, size_t* size) {
  if (size != nullptr) *size = reply->body.size();
  return reply->body.data();
}

const void* weir_rpc_reply_attachment(const weir_rpc_reply* reply, size_t* size) {
  if (size != nullptr) *size = reply->attachment.size();
  return reply->attachment.data();
}

void weir_rpc_reply_free(weir_rpc_reply* reply) { delete reply; }

}  // extern "C"
