// Expensive frames take turns: how much of them a thread of a server handles before it looks at all its other
// connections again.
//
// A request's cost is known once it was handled: the bytes that it was decompressed to, the memory that its
// arguments took. Once a thread has spent `most_spent` since the last turn, requests that may be expensive
// (large, compressed, or of a connection that was expensive before) wait, and their connections queue up. In
// a turn of the io_context each connection runs one request, in the order in which they came, until one was
// expensive. So a client with small requests waits for one expensive request, not for all that others send.
//
// Ownership: shared by a thread's connections. Threading: that thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

namespace weir::rpc {

class ThreadTurns : public std::enable_shared_from_this<ThreadTurns> {
 public:
  // A connection that waits for its turn.
  class Waiting {
   public:
    // Returns false if it has nothing waiting any more.
    virtual bool take_turn() = 0;

   protected:
    ~Waiting() = default;
  };

  static constexpr std::size_t most_spent = 2 << 20;
  static constexpr std::size_t large_bytes = 4 << 10;

  explicit ThreadTurns(asio::io_context& io) : io_(io) {}

  bool is_over() const { return spent_ >= most_spent || !queue_.empty(); }
  void spend(std::size_t cost) {
    spent_ += cost;
    if (spent_ >= most_spent) next_soon();
  }
  void wait(std::weak_ptr<Waiting> who) {
    queue_.push_back(std::move(who));
    next_soon();
  }

 private:
  void next_soon() {
    if (std::exchange(posted_, true)) return;
    asio::post(io_, [self = shared_from_this()] { self->next(); });
  }
  void next() {
    posted_ = false;
    spent_ = 0;
    while (!queue_.empty() && spent_ < most_spent / 2) {
      const auto who = queue_.front().lock();
      queue_.pop_front();
      if (who && who->take_turn()) queue_.push_back(who);
    }
    if (!queue_.empty()) next_soon();
  }

  asio::io_context& io_;
  std::size_t spent_ = 0;  // since the last turn
  bool posted_ = false;
  std::deque<std::weak_ptr<Waiting>> queue_;
};

}  // namespace weir::rpc
