// A server for C programs: an rpc::Server in a thread of its own. A handler gets a request, which it may
// answer at any time and from any thread.
//
// A request and the coroutine that waits for its answer share an Exchange. Its answer, timer and coroutine
// belong to the loop; a thread that answers posts to the loop. The request and the coroutine may outlive each
// other and the server: a request reaches its loop through Door, which the server closes when it ends.
#include <asio/co_spawn.hpp>
#include <asio/redirect_error.hpp>
#include <atomic>
#include <cstring>
#include <mutex>

#include "rpc/c/loop.hpp"
#include "rpc/c/options.hpp"
#include "rpc/transport/rdma_transport.hpp"

namespace {

using namespace weir::rpc;

constexpr std::byte nil{0xc0};  // MessagePack

// The way into a loop that may be gone. Its lock keeps the loop alive while work is posted.
class Door {
 public:
  explicit Door(c::Loop& to) : to_(&to) {}
  // False if the loop is gone; `work` is then unchanged.
  template <class Work>
  bool post(Work& work) {
    const std::lock_guard lock(mutex_);
    if (to_ == nullptr) return false;
    asio::post(to_->io(), std::move(work));
    return true;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    to_ = nullptr;
  }

 private:
  std::mutex mutex_;
  c::Loop* to_;
};

struct Answer {
  Error error;
  bool failed = false;
  std::vector<std::byte> result;
  Buffer attachment;
};

struct Exchange {
  std::string method;
  std::vector<std::byte> arguments;
  Buffer attachment;
  std::string peer;
  std::string certificate;
  std::string identity;
  std::optional<Context::Clock::time_point> deadline;
  std::shared_ptr<Door> door;
  // Set in the loop and read by the working thread: only a hint that work may stop.
  std::atomic<bool> cancelled{false};
  // Used only in the loop:
  asio::steady_timer* waiting = nullptr;  // the coroutine's timer, while it exists
  std::unique_ptr<Answer> answer;
};

struct Handled {
  weir_rpc_handler handler;
  void* user;
  std::shared_ptr<Door> door;
};

}  // namespace

struct weir_rpc_request {
  std::shared_ptr<Exchange> exchange;
};

namespace {

// Tells the exchange when its coroutine ends, however it ends.
class Waiting {
 public:
  Waiting(std::shared_ptr<Exchange> exchange, asio::steady_timer& timer) : exchange_(std::move(exchange)) {
    exchange_->waiting = &timer;
  }
  ~Waiting() {
    exchange_->waiting = nullptr;
    if (!exchange_->answer) exchange_->cancelled.store(true, std::memory_order_relaxed);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::shared_ptr<Exchange> exchange_;
};

asio::awaitable<Result<void>> serve(void* object, Context& context, std::span<const std::byte> body,
                                    ReplyBody& reply) {
  const Handled& method = *static_cast<const Handled*>(object);
  auto exchange = std::make_shared<Exchange>();
  exchange->method = context.method();
  exchange->arguments.assign(body.begin(), body.end());
  exchange->attachment = std::move(context.attachment);
  exchange->peer = context.peer();
  exchange->certificate = context.peer_certificate();
  exchange->identity = context.identity().name;
  exchange->deadline = context.deadline();
  exchange->door = method.door;
  asio::steady_timer timer(co_await asio::this_coro::executor, Context::Clock::time_point::max());
  const Waiting waiting(exchange, timer);
  method.handler(method.user, std::make_unique<weir_rpc_request>(exchange).release());
  if (!exchange->answer) {
    std::error_code woken;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  if (!exchange->answer) throw std::system_error(asio::error::operation_aborted);
  Answer& answer = *exchange->answer;
  if (answer.failed) co_return std::unexpected(std::move(answer.error));
  if (answer.result.empty()) answer.result.push_back(nil);
  context.reply_attachment = std::move(answer.attachment);
  co_return write_result<EncodedBody>(std::span<const std::byte>(answer.result), reply);
}

void answer_request(weir_rpc_request* request, std::unique_ptr<Answer> answer) {
  const std::unique_ptr<weir_rpc_request> owned(request);
  auto work = [exchange = owned->exchange, answer = std::move(answer)]() mutable {
    exchange->answer = std::move(answer);
    if (exchange->waiting != nullptr) exchange->waiting->cancel();
  };
  // Without a server the answer goes nowhere, and its memory is released here.
  static_cast<void>(owned->exchange->door->post(work));
}

// An attachment in the program's memory, and the function that tells the program when it is free again.
struct Lent {
  weir_rpc_release release;
  void* owner;
  static void give_back(void* lent, std::byte*, std::size_t) {
    const std::unique_ptr<Lent> self(static_cast<Lent*>(lent));
    self->release(self->owner);
  }
};

Buffer attachment_of(const void* data, std::size_t size, weir_rpc_release release, void* owner) {
  const std::span bytes(static_cast<const std::byte*>(data), data != nullptr ? size : 0);
  if (release == nullptr) return bytes.empty() ? Buffer() : Buffer::copy_of(bytes);
  const std::span writable(const_cast<std::byte*>(bytes.data()), bytes.size());
  return {writable, Lent::give_back, std::make_unique<Lent>(Lent{release, owner}).release()};
}

}  // namespace

struct weir_rpc_server final : public c::Loop {
 public:
  explicit weir_rpc_server(const weir_rpc_options* options)
      : options_(options != nullptr ? *options : weir_rpc_options()), door_(std::make_shared<Door>(*this)) {
    run([this] { server_.emplace(io(), options_.serve); });
  }

  Result<void> add(std::string name, std::string types, weir_rpc_handler handler, void* user) {
    if (listening_)
      return fail(Errc::bad_setting,
                  "'" + name + "' comes too late: add functions before the server listens");
    methods_.push_back(std::make_unique<Handled>(Handled{handler, user, door_}));
    Registered row;
    row.name = std::move(name);
    row.schema.text = std::move(types);
    row.object = methods_.back().get();
    row.later = serve;
    try {
      server_->add(row);
    } catch (const std::logic_error& twice) {
      return fail(Errc::bad_setting, twice.what());
    }
    return {};
  }

  Result<std::string> listen(const std::string& address) {
    if (!have_engine_) {
      const auto engine = c::engine_for(io(), address, options_);
      if (!engine) return std::unexpected(engine.error());
      TransportOptions known;
      known.engine = *engine;
      have_engine_ = *engine != nullptr && engine_of(io(), known);  // the listener finds the engine there
    }
    listening_ = true;
    return server_->listen(address);
  }

  Result<void> renew_certificates() { return server_->renew_certificates(); }
  void drain() { server_->drain(); }
  std::uint32_t open() const { return server_->open(); }

 private:
  ~weir_rpc_server() override = default;
  void farewell() override {
    door_->close();
    server_->stop();
  }
  void abandon() override {}  // requests belong to their handlers

  weir_rpc_options options_;
  std::shared_ptr<Door> door_;
  std::vector<std::unique_ptr<Handled>> methods_;
  std::optional<Server> server_;
  bool listening_ = false;
  bool have_engine_ = false;
};

extern "C" {

int weir_rpc_server_new(weir_rpc_server** server, const weir_rpc_options* options, weir_rpc_error* error) {
  if (server == nullptr) return c::report(error, {Errc::bad_setting, "server may not be NULL"});
  *server = nullptr;
  const auto made = c::or_lack([&] { return Result<weir_rpc_server*>(new weir_rpc_server(options)); });
  if (!made) return c::report(error, made.error());
  *server = *made;
  return 0;
}

int weir_rpc_server_add(weir_rpc_server* server, const char* method, const char* types,
                        weir_rpc_handler handler, void* user, weir_rpc_error* error) {
  if (method == nullptr || handler == nullptr)
    return c::report(error, {Errc::bad_setting, "method and handler may not be NULL"});
  const auto done =
      server->run([&] { return server->add(method, types != nullptr ? types : "", handler, user); });
  return done ? 0 : c::report(error, done.error());
}

int weir_rpc_server_listen(weir_rpc_server* server, const char* address, char* bound, size_t bound_size,
                           weir_rpc_error* error) {
  if (address == nullptr) return c::report(error, {Errc::bad_setting, "address may not be NULL"});
  const auto at = c::or_lack([&] { return server->run([&] { return server->listen(address); }); });
  if (!at) return c::report(error, at.error());
  if (bound == nullptr) return 0;
  if (at->size() >= bound_size)
    return c::report(
        error, {Errc::bad_setting, "`bound` needs " + std::to_string(at->size() + 1) + " bytes for " + *at});
  std::memcpy(bound, at->c_str(), at->size() + 1);
  return 0;
}

int weir_rpc_server_renew_certificates(weir_rpc_server* server, weir_rpc_error* error) {
  const auto done = c::or_lack([&] { return server->run([&] { return server->renew_certificates(); }); });
  return done ? 0 : c::report(error, done.error());
}

void weir_rpc_server_drain(weir_rpc_server* server) {
  server->run([server] { server->drain(); });
}

uint32_t weir_rpc_server_open(weir_rpc_server* server) {
  return server->run([server] { return server->open(); });
}

void weir_rpc_server_free(weir_rpc_server* server) {
  if (server != nullptr) server->leave();
}

const char* weir_rpc_request_method(const weir_rpc_request* request) {
  return request->exchange->method.c_str();
}

const void* weir_rpc_request_arguments(const weir_rpc_request* request, size_t* size) {
  if (size != nullptr) *size = request->exchange->arguments.size();
  return request->exchange->arguments.data();
}

const void* weir_rpc_request_attachment(const weir_rpc_request* request, size_t* size) {
  if (size != nullptr) *size = request->exchange->attachment.size();
  return request->exchange->attachment.data();
}

const char* weir_rpc_request_peer(const weir_rpc_request* request) { return request->exchange->peer.c_str(); }

const char* weir_rpc_request_certificate(const weir_rpc_request* request) {
  return request->exchange->certificate.c_str();
}

const char* weir_rpc_request_identity(const weir_rpc_request* request) {
  return request->exchange->identity.c_str();
}

int64_t weir_rpc_request_remaining_us(const weir_rpc_request* request) {
  const auto& deadline = request->exchange->deadline;
  if (!deadline) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(*deadline - Context::Clock::now());
  return std::max<std::int64_t>(left.count(), 0);
}

int weir_rpc_request_cancelled(const weir_rpc_request* request) {
  return request->exchange->cancelled.load(std::memory_order_relaxed) ? 1 : 0;
}

void weir_rpc_respond(weir_rpc_request* request, const void* result, size_t result_size,
                      const void* attachment, size_t attachment_size, weir_rpc_release release, void* owner) {
  auto answer = std::make_unique<Answer>();
  const auto* bytes = static_cast<const std::byte*>(result);
  if (bytes != nullptr) answer->result.assign(bytes, bytes + result_size);
  answer->attachment = attachment_of(attachment, attachment_size, release, owner);
  answer_request(request, std::move(answer));
}

void weir_rpc_refuse(weir_rpc_request* request, int code, const char* message) {
  auto answer = std::make_unique<Answer>();
  answer->failed = true;
  answer->error.code =
      code > 0 ? errc_of(static_cast<std::uint16_t>(std::min(code, UINT16_MAX))) : Errc::failed;
  answer->error.what = message != nullptr ? message : "";
  answer_request(request, std::move(answer));
}

}  // extern "C"
