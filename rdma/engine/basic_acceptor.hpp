// What Acceptor and ChannelAcceptor share: arriving connections, and accepts that wait for them. `Connected`
// is the type handed out (Stream, Channel), made from a `Life`, the type of connection that arrives.
//
// Several threads: a listening acceptor gives seats to the engines of other threads, and the acceptors seated
// there take turns with it in receiving connections. Everything that happens to such a connection happens in
// its own thread.
//
// Ownership: movable; closing an acceptor drops connections that were not accepted and ends waiting accepts
// with operation_aborted. Threading: the engine's thread. A seat is given in the listening acceptor's thread
// and taken in the other thread; the other engine outlives the listening acceptor.
#pragma once

#include <asio/async_result.hpp>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "rdma/engine.hpp"
#include "rdma/engine/listener.hpp"

namespace weir::rdma {

template <class Connected, class Life>
class BasicAcceptor {
 public:
  using executor_type = typename Connected::executor_type;

  executor_type get_executor() const noexcept { return engine_->io().get_executor(); }
  Endpoint local_endpoint() const { return listener_ ? listener_->local() : Endpoint(); }
  bool is_open() const { return arrivals_ != nullptr; }
  // Requests rejected: of another protocol, or for lack of memory, of room in the backlog, or of device
  // objects.
  std::uint64_t rejected() const { return arrivals_ ? arrivals_->rejected() : 0; }
  void cancel() {
    if (arrivals_) arrivals_->cancel();
  }
  // Stops listening. Connections that are being established are still handed out, and then accepts end with
  // operation_aborted.
  void finish() {
    listener_.reset();
    if (arrivals_) arrivals_->finish();
  }
  void close() {
    seat_.reset();
    listener_.reset();
    arrivals_.reset();
  }
  // For a listening acceptor: a seat for sit(), in the thread of `other`. A seat that is never taken has no
  // effect.
  std::shared_ptr<Seat> seat_for(Engine& other) {
    return listener_ ? listener_->seat_for(other) : std::make_shared<Seat>(Seat{other, {}});
  }

  // Completes with void(std::error_code, Connected); on an error the Connected is not open.
  template <class Token>
  auto async_accept(Token&& token);

 protected:
  // Listens, unless it has a seat.
  BasicAcceptor(Engine& engine, std::shared_ptr<Arrivals> arrivals, std::unique_ptr<Listener> listener)
      : engine_(&engine), arrivals_(std::move(arrivals)), listener_(std::move(listener)) {}
  BasicAcceptor(std::shared_ptr<Seat> seat, std::shared_ptr<Arrivals> arrivals)
      : engine_(&seat->engine), arrivals_(std::move(arrivals)), seat_(std::move(seat)) {
    seat_->arrivals = arrivals_;
  }

 private:
  template <class Handler>
  class AcceptOp;
  struct StartAccept;

  Engine* engine_;
  std::shared_ptr<Arrivals> arrivals_;  // others hold it only while they look at it
  std::unique_ptr<Listener> listener_;  // none if it has a seat
  std::shared_ptr<Seat> seat_;
};

template <class Connected, class Life>
template <class Handler>
class BasicAcceptor<Connected, Life>::AcceptOp final : public IoOp<std::error_code, ConnectionLife*> {
 public:
  AcceptOp(Handler handler, const executor_type& io, Engine& engine)
      : engine_(engine),
        handler_(std::move(handler)),
        work_(asio::prefer(asio::get_associated_executor(handler_, io),
                           asio::execution::outstanding_work.tracked)) {}

  void complete(std::error_code failed, ConnectionLife* connection) override {
    Connected connected =
        connection != nullptr ? Connected(engine_, static_cast<Life&>(*connection)) : Connected(engine_);
    auto work = std::move(work_);
    Handler handler = std::move(handler_);
    free_op(this, handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.clear();
    asio::dispatch(work, [handler = std::move(handler), failed, connected = std::move(connected)]() mutable {
      std::move(handler)(failed, std::move(connected));
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

template <class Connected, class Life>
struct BasicAcceptor<Connected, Life>::StartAccept {
  using executor_type = typename Connected::executor_type;
  BasicAcceptor* acceptor;
  executor_type get_executor() const noexcept { return acceptor->get_executor(); }

  template <class Handler>
  void operator()(Handler&& handler) const {
    using H = std::decay_t<Handler>;
    if (!acceptor->arrivals_)
      return post_completion(H(std::forward<Handler>(handler)), get_executor(), make_error_code(Errc::closed),
                             Connected(*acceptor->engine_));
    auto slot = asio::get_associated_cancellation_slot(handler);
    const std::uint64_t number = acceptor->arrivals_->wait_accept(AcceptOpPtr(
        make_op<AcceptOp<H>>(H(std::forward<Handler>(handler)), get_executor(), *acceptor->engine_)));
    if (slot.is_connected())
      slot.assign([weak = std::weak_ptr(acceptor->arrivals_), number](asio::cancellation_type) {
        if (const auto arrivals = weak.lock()) arrivals->cancel(number);
      });
  }
};

template <class Connected, class Life>
template <class Token>
auto BasicAcceptor<Connected, Life>::async_accept(Token&& token) {
  return asio::async_initiate<Token, void(std::error_code, Connected)>(StartAccept{this}, token);
}

}  // namespace weir::rdma
