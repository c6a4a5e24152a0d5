// Keeps an io_context looking at its sockets for a short while after input before it sleeps (SpinPolicy says
// how long).
//
// It looks only every few microseconds: by then more than one request may have arrived, and handling them
// together costs both ends less. Meanwhile the loop serves timers and everything else. While an Engine polls
// in the same loop, which keeps the loop awake anyway, this does nothing.
//
// Threading: the io_context's one thread.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "waiting/spin_policy.hpp"

namespace weir::waiting {

class IdleSpin {
 public:
  // `others_poll`: whether something else keeps the loop from sleeping.
  IdleSpin(asio::io_context& io, std::chrono::microseconds longest, std::function<bool()> others_poll);
  ~IdleSpin() { *alive_ = false; }
  IdleSpin(const IdleSpin&) = delete;
  IdleSpin& operator=(const IdleSpin&) = delete;

  // A socket had input.
  void worked();

 private:
  enum Step { yield, after_yield, wait, after_wait, steps };

  void post();
  void turn();

  asio::io_context& io_;
  SpinPolicy policy_;
  std::function<bool()> others_poll_;
  bool posted_ = false;
  Step next_ = yield;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // a turn may run after this is gone
};

}  // namespace weir::waiting
