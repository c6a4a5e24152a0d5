// The calls to one neighbour that wait for their replies.
//
// Bounded: at most `limit` threads wait at once. Every function may be called from any thread; wait() blocks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "link/error.hpp"
#include "link/not_cancelled.hpp"
#include "link/same_host.hpp"

namespace weir::link {

class PendingCalls {
 public:
  static constexpr std::size_t limit = 1024;

  // Numbers the call, has `send(number)` send it, and waits for answer(number, ...).
  template <class Send>
  Result<Message> run(std::chrono::milliseconds patience, Send send) {
    const auto give_up = Clock::now() + patience;
    const NotCancelled whole;
    Call call;
    std::unique_lock hold(mutex_);
    if (ended_) return std::unexpected(*ended_);
    if (calls_.size() >= limit)
      return failure(std::errc::no_buffer_space, "too many calls wait for this process");
    const std::uint64_t number = next_++;
    calls_.emplace(number, &call);
    hold.unlock();
    auto sent = send(number);
    hold.lock();
    if (sent) call.answered.wait_until(hold, give_up, [&] { return call.answer.has_value(); });
    calls_.erase(number);
    if (call.answer) return std::move(*call.answer);
    if (!sent) return std::unexpected(sent.error());
    return failure(std::errc::timed_out, "the other process did not answer in " +
                                             std::to_string(patience.count()) +
                                             " ms; it may be stopped or overloaded");
  }

  // An answer that no call waits for any more is dropped, its descriptors closed.
  void answer(std::uint64_t number, Result<Message> answer) {
    const std::scoped_lock hold(mutex_);
    const auto found = calls_.find(number);
    if (found == calls_.end() || found->second->answer) return;
    found->second->answer.emplace(std::move(answer));
    found->second->answered.notify_one();
  }

  // Fails all calls, also those to come.
  void end(const Error& why) {
    const std::scoped_lock hold(mutex_);
    ended_ = why;
    for (auto& [number, call] : calls_) {
      if (call->answer) continue;
      call->answer.emplace(std::unexpected(why));
      call->answered.notify_one();
    }
  }

 private:
  struct Call {
    std::condition_variable answered;
    std::optional<Result<Message>> answer;
  };
  std::mutex mutex_;
  std::map<std::uint64_t, Call*> calls_;
  std::uint64_t next_ = 1;  // 0 means "no reply wanted"
  std::optional<Error> ended_;
};

}  // namespace weir::link
