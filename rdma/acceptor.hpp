// Listens for RDMA connections and hands them out as streams, as the protocol's server.
//
// Ownership: movable; closing it drops connections that nobody accepted and ends waiting accepts with
// operation_aborted. Threading: the engine's thread.
#pragma once

#include <asio/async_result.hpp>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "rdma/engine.hpp"
#include "rdma/listener.hpp"
#include "rdma/stream.hpp"

namespace weir::rdma {

struct AcceptorSettings {
  StreamSettings stream;
  std::uint32_t backlog = 511;  // connections that nobody accepted yet; more are rejected
};

class Acceptor {
 public:
  using executor_type = Stream::executor_type;

  // Port 0 takes a free one; an IPv6 address listens for IPv6 only.
  static Result<Acceptor> listen(Engine& engine, const Endpoint& address,
                                 const AcceptorSettings& settings = {});

  executor_type get_executor() const noexcept { return engine_->io().get_executor(); }
  Endpoint local_endpoint() const { return listener_ ? listener_->local() : Endpoint(); }
  bool is_open() const { return listener_ != nullptr; }
  // Requests refused for want of memory, room in the backlog, or device objects.
  std::uint64_t rejected() const { return listener_ ? listener_->rejected() : 0; }
  void cancel() {
    if (listener_) listener_->cancel();
  }
  void close() { listener_.reset(); }

  // Completes with void(std::error_code, Stream); with an error the stream is not open.
  template <class Token>
  auto async_accept(Token&& token);

 private:
  template <class Handler>
  class AcceptOp;
  struct StartAccept;
  Acceptor(Engine& engine, std::unique_ptr<Listener> listener)
      : engine_(&engine), listener_(std::move(listener)) {}

  Engine* engine_;
  std::unique_ptr<Listener> listener_;
};

template <class Handler>
class Acceptor::AcceptOp final : public IoOp<std::error_code, ConnectionLife*> {
 public:
  AcceptOp(Handler handler, const executor_type& io, Engine& engine)
      : engine_(engine),
        handler_(std::move(handler)),
        work_(asio::prefer(asio::get_associated_executor(handler_, io),
                           asio::execution::outstanding_work.tracked)) {}

  void complete(std::error_code failed, ConnectionLife* connection) override {
    Stream stream =
        connection != nullptr ? Stream(engine_, static_cast<Connection&>(*connection)) : Stream(engine_);
    auto work = std::move(work_);
    Handler handler = std::move(handler_);
    free_op(this, handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.clear();
    asio::dispatch(work, [handler = std::move(handler), failed, stream = std::move(stream)]() mutable {
      std::move(handler)(failed, std::move(stream));
    });
  }
  void destroy() override {
    Handler handler = std::move(handler_);
    free_op(this, handler);
  }

 private:
  using Work =
      decltype(asio::prefer(std::declval<typename asio::associated_executor<Handler, executor_type>::type>(),
                            asio::execution::outstanding_work.tracked));
  Engine& engine_;
  Handler handler_;
  Work work_;
};

struct Acceptor::StartAccept {
  using executor_type = Acceptor::executor_type;
  Acceptor* acceptor;
  executor_type get_executor() const noexcept { return acceptor->get_executor(); }

  template <class Handler>
  void operator()(Handler&& handler) const {
    using H = std::decay_t<Handler>;
    if (!acceptor->listener_)
      return post_completion(H(std::forward<Handler>(handler)), get_executor(), make_error_code(Errc::closed),
                             Stream(*acceptor->engine_));
    auto slot = asio::get_associated_cancellation_slot(handler);
    Listener* listener = acceptor->listener_.get();
    listener->wait_accept(AcceptOpPtr(
        make_op<AcceptOp<H>>(H(std::forward<Handler>(handler)), get_executor(), *acceptor->engine_)));
    if (slot.is_connected()) slot.assign([listener](asio::cancellation_type) { listener->cancel(); });
  }
};

template <class Token>
auto Acceptor::async_accept(Token&& token) {
  return asio::async_initiate<Token, void(std::error_code, Stream)>(StartAccept{this}, token);
}

}  // namespace weir::rdma
