// Threads of their own for functions that block: those that read a disk, wait for a database, or compute for
// long, none of which may hold up a connection's thread.
//
//   rpc::BlockingThreads threads({.threads = 8, .max_waiting = 32});
//   auto row = co_await threads.run([&] { return database.find(key); });      // Result<Row>
//
// At most `threads` run at a time and `max_waiting` wait for one; more fail at once with Errc::overloaded. A
// coroutine that is cancelled while its work waits ends with Errc::cancelled; one whose work runs goes on
// when that has ended. What the work throws comes out of run(). Threads are started when they are needed
// first.
//
// A server has such threads (ServerOptions::blocking), and runs functions in them that say so:
//   template <> inline constexpr bool weir::rpc::blocking<shop::find> = true;
//
// Ownership: the destructor waits for what runs; what waits ends with Errc::closed. The io_contexts whose
// coroutines wait outlive it. Threading: any.
#pragma once

#include <asio/associated_cancellation_slot.hpp>
#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "rpc/error.hpp"

namespace weir::rpc {

template <auto F>
inline constexpr bool blocking = false;

struct BlockingOptions {
  std::uint32_t threads = 8;       // at least 1
  std::uint32_t max_waiting = 64;  // for one of them
};

class BlockingThreads {
 public:
  explicit BlockingThreads(BlockingOptions options = {});
  ~BlockingThreads();
  BlockingThreads(const BlockingThreads&) = delete;
  BlockingThreads& operator=(const BlockingThreads&) = delete;

  template <class Work>
  using Returned = std::invoke_result_t<Work&>;

  template <class Work>
  asio::awaitable<Result<Returned<Work>>> run(Work work) {
    const auto outcome = std::make_shared<Outcome<Work>>(std::move(work));
    const Run task = [outcome] { outcome->run(); };
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    Result<void> ran = co_await ended(task, executor);
    if (!ran) co_return std::unexpected(std::move(ran.error()));
    if (outcome->thrown) std::rethrow_exception(outcome->thrown);
    if constexpr (std::is_void_v<Returned<Work>>)
      co_return Result<void>();
    else
      co_return std::move(*outcome->value);
  }

  // Accepts nothing more, ends waiting work, and waits for running work. The destructor does the same.
  void stop();

 private:
  template <class Work>
  struct Outcome {
    explicit Outcome(Work given) : work(std::move(given)) {}
    void run() {
      try {
        if constexpr (std::is_void_v<Returned<Work>>)
          work();
        else
          value.emplace(work());
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    Work work;
    std::conditional_t<std::is_void_v<Returned<Work>>, std::monostate, std::optional<Returned<Work>>> value;
    std::exception_ptr thrown;
  };

  using Run = std::function<void()>;
  using Done = std::function<void(Result<void>)>;
  // Not a coroutine: GCC 12 destroys a closure that is a temporary of an awaited expression twice.
  asio::awaitable<Result<void>> ended(const Run& run, const asio::any_io_executor& executor) {
    return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<void>)>(
        [this, run, executor](auto handler) {
          auto slot = asio::get_associated_cancellation_slot(handler);
          auto kept = std::make_shared<decltype(handler)>(std::move(handler));
          const std::uint64_t number = begin(run, [kept, executor](Result<void> how) {
            asio::post(executor, [kept, how = std::move(how)]() mutable {
              auto waiting = std::move(*kept);
              std::move(waiting)(std::move(how));
            });
          });
          if (slot.is_connected()) slot.assign([this, number](asio::cancellation_type) { cancel(number); });
        },
        asio::use_awaitable);
  }
  // Returns the number of the work. `done` runs once: here if there is no room, else in a thread.
  std::uint64_t begin(Run run, Done done);
  // Cancels only waiting work.
  void cancel(std::uint64_t number);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::rpc
