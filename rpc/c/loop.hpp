// The thread of a client's or a server's own that C programs do not see: an io_context, and how other threads
// get something done there.
//
// The derived object lives from its creation to leave(), which deletes it. Threading: post(), run() and
// in_loop() from any thread; everything else of the io_context's belongs to the loop's thread.
#pragma once

#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <future>
#include <thread>
#include <utility>

namespace weir::rpc::c {

class Loop {
 public:
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  asio::io_context& io() { return io_; }
  bool in_loop() const { return std::this_thread::get_id() == thread_.get_id() || ends_itself_; }

  template <class Work>
  void post(Work work) {
    asio::post(io_, std::move(work));
  }
  // Runs `work` in the loop and waits for what it gives.
  template <class Work>
  auto run(Work work) -> decltype(work()) {
    if (in_loop()) return work();
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto done = task.get_future();
    asio::post(io_, std::move(task));
    return done.get();
  }
  // Says farewell(), gives what is under way a moment to end, and deletes this; in the loop's own thread it
  // returns before that.
  void leave();

 protected:
  virtual ~Loop();
  // In the loop: close everything.
  virtual void farewell() = 0;
  // Nothing runs any more: what still waits is to end now.
  virtual void abandon() = 0;

 private:
  void thread();

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::thread thread_;
  bool ends_itself_ = false;
};

}  // namespace weir::rpc::c
