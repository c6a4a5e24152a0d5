// A callback that may install its own successor, or cause its owner to be released, while it runs: it stays
// where it is until it has returned. A call costs no allocation and no move. The owner must outlive the call.
// One thread.
#pragma once

#include <functional>
#include <optional>
#include <utility>

namespace weir::rdma {

class CallbackSlot {
 public:
  using Callback = std::move_only_function<void()>;

  void set(Callback callback) {
    if (running_)
      successor_ = std::move(callback);
    else
      callback_ = std::move(callback);
  }

  explicit operator bool() const { return static_cast<bool>(callback_); }

  void operator()() {
    const Running running(*this);
    callback_();
  }

 private:
  struct Running {  // also when the callback throws
    explicit Running(CallbackSlot& which) : slot(which) { slot.running_ = true; }
    ~Running() {
      slot.running_ = false;
      if (!slot.successor_) return;
      slot.callback_ = std::move(*slot.successor_);
      slot.successor_.reset();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    CallbackSlot& slot;
  };

  Callback callback_;
  std::optional<Callback> successor_;
  bool running_ = false;
};

}  // namespace weir::rdma
