// A thread with an io_context, and ways for other threads to run work there.
//
// Threading: io(), run() and stop() from any other thread; nothing runs after stop().
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <future>
#include <thread>
#include <utility>

namespace weir::tensor {

class ServingThread {
 public:
  explicit ServingThread(const char* name);
  ~ServingThread();
  ServingThread(const ServingThread&) = delete;
  ServingThread& operator=(const ServingThread&) = delete;

  asio::io_context& io() { return io_; }

  // Runs `work` on the thread and waits for its result.
  template <class Work>
  auto run(Work work) -> decltype(work()) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto done = task.get_future();
    asio::post(io_, std::move(task));
    return done.get();
  }
  // Runs `farewell` on the thread, lets what is in progress finish for a moment, and joins. Call once.
  template <class Farewell>
  void stop(Farewell farewell) {
    if (!thread_.joinable()) return;
    asio::post(io_, [this, farewell = std::move(farewell)]() mutable {
      farewell();
      guard_.reset();
      io_.stop();
    });
    thread_.join();
  }

 private:
  void serve();

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
  std::thread thread_;
};

}  // namespace weir::tensor
