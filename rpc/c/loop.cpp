#include "rpc/c/loop.hpp"

#include <pthread.h>

#include <chrono>
#include <csignal>

namespace weir::rpc::c {

namespace {
constexpr std::chrono::seconds longest_farewell{2};
}

// Signals are the program's, so none of them may be taken by this thread.
Loop::Loop() : guard_(io_.get_executor()) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { thread(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "weir-rpc");
}

Loop::~Loop() = default;

void Loop::thread() {
  io_.run();
  io_.restart();
  io_.run_for(longest_farewell);  // returns as soon as all connections are closed
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
