#include "rpc/c/loop.hpp"

#include <pthread.h>

#include <chrono>
#include <csignal>

namespace weir::rpc::c {

namespace {
constexpr std::chrono::seconds longest_farewell{2};

// Signals belong to the program's threads, so block them while a thread is created here.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};
}  // namespace

Loop::Loop() : guard_(io_.get_executor()) {
  {
    const NoSignals here;  // unblocks signals even if no thread can be made
    thread_ = std::thread([this] { thread(); });
  }
  pthread_setname_np(thread_.native_handle(), "weir-rpc");
}

Loop::~Loop() = default;

void Loop::thread() {
  io_.run();
  io_.restart();
  io_.run_for(longest_farewell);  // returns once all connections are closed
  abandon();
  if (ends_itself_) delete this;
}

void Loop::leave() {
  const bool inside = in_loop();
  if (inside) {
    thread_.detach();
    ends_itself_ = true;
  }
  asio::post(io_, [this] {
    farewell();
    guard_.reset();
    io_.stop();
  });
  if (inside) return;
  thread_.join();
  delete this;
}

}  // namespace weir::rpc::c
