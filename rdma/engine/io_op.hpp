// An Asio operation that waits inside a stream, an acceptor or a connect: the completion handler with its
// type erased, its executor kept busy, its memory taken from its own allocator.
//
// Ownership: the holder of the pointer must call complete() or destroy() exactly once; both free it.
// complete() runs the handler through its associated executor, inline where that is allowed, so it must not
// be called from within the function that started the operation: use post_completion() there. One thread.
#pragma once

#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/dispatch.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/recycling_allocator.hpp>
#include <cstddef>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

namespace weir::rdma {

template <class... Result>
class IoOp {
 public:
  IoOp() = default;
  IoOp(const IoOp&) = delete;
  IoOp& operator=(const IoOp&) = delete;
  virtual void complete(Result...) = 0;
  virtual void destroy() = 0;

 protected:
  ~IoOp() = default;
};

// Lets unique_ptr hold an operation.
struct DestroyOp {
  template <class Op>
  void operator()(Op* op) const {
    op->destroy();
  }
};
template <class... Result>
using IoOpPtr = std::unique_ptr<IoOp<Result...>, DestroyOp>;

template <class Handler>
using OpAllocator = typename asio::associated_allocator<Handler, asio::recycling_allocator<void>>::type;

template <class Base, class Handler, class... Result>
class HandlerOp : public Base {
 public:
  HandlerOp(Handler handler, const asio::io_context::executor_type& io)
      : handler_(std::move(handler)),
        work_(asio::prefer(asio::get_associated_executor(handler_, io),
                           asio::execution::outstanding_work.tracked)) {}

  void complete(Result... result) final {
    auto work = std::move(work_);
    Handler handler = std::move(handler_);
    // Freed before the upcall: the handler may start the next operation, which then takes the same memory.
    release(handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.clear();
    asio::dispatch(work, [handler = std::move(handler), result = std::tuple(std::move(result)...)]() mutable {
      std::apply(std::move(handler), std::move(result));
    });
  }

  void destroy() final {
    Handler handler = std::move(handler_);  // what it owns dies after the operation
    release(handler);
  }

 protected:
  ~HandlerOp() = default;
  // Frees this operation with the allocator of `handler`, which was moved out of it: `free_op(this,
  // handler)`.
  virtual void release(Handler& handler) = 0;

 private:
  using Work = decltype(asio::prefer(
      std::declval<typename asio::associated_executor<Handler, asio::io_context::executor_type>::type>(),
      asio::execution::outstanding_work.tracked));
  Handler handler_;
  Work work_;
};

// Makes an operation Op(handler, io, arguments...) in the handler's memory.
template <class Op, class Handler, class... Arguments>
Op* make_op(Handler handler, const asio::io_context::executor_type& io, Arguments&&... arguments) {
  typename std::allocator_traits<OpAllocator<Handler>>::template rebind_alloc<Op> allocator(
      asio::get_associated_allocator(handler, asio::recycling_allocator<void>()));
  return new (allocator.allocate(1)) Op(std::move(handler), io, std::forward<Arguments>(arguments)...);
}

template <class Op, class Handler>
void free_op(Op* op, Handler& handler) {
  typename std::allocator_traits<OpAllocator<Handler>>::template rebind_alloc<Op> allocator(
      asio::get_associated_allocator(handler, asio::recycling_allocator<void>()));
  op->~Op();
  allocator.deallocate(op, 1);
}

// A connect.
template <class Handler>
class ConnectOp final : public HandlerOp<IoOp<std::error_code>, Handler, std::error_code> {
 public:
  using HandlerOp<IoOp<std::error_code>, Handler, std::error_code>::HandlerOp;

 private:
  void release(Handler& handler) override { free_op(this, handler); }
};

// Completes an operation that finished before it could wait: never inline.
template <class Handler, class... Result>
void post_completion(Handler handler, const asio::io_context::executor_type& io, Result... result) {
  const auto executor = asio::get_associated_executor(handler, io);
  asio::post(executor, [handler = std::move(handler), result = std::tuple(std::move(result)...)]() mutable {
    std::apply(std::move(handler), std::move(result));
  });
}

}  // namespace weir::rdma
