// The completion channels of this process: for each an eventfd that counts its events one by one, and the
// descriptor that the program waits on, an epoll set with the eventfd in it.
//
// The set is there so that packets can wake the program's thread without a detour through the link's thread:
// while a channel holds a port, the port is in the set, too. Then the descriptor may be readable without an
// event. A program that never blocks in ibv_get_cq_event is told EAGAIN (as ibv_get_cq_event(3) provides
// for), another would block, so only a channel whose descriptor has O_NONBLOCK holds a port, and only if it
// is the process's only one: of several threads each packet would wake all.
//
// Threading: all functions from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "link/error.hpp"
#include "link/unique_fd.hpp"

namespace weir::verbs {

class CompletionChannels {
 public:
  struct Opened {
    std::uint32_t number;  // as in CqContext; never reused
    int descriptor;        // what the program waits on
    int events;            // the eventfd, blocking; both belong to us
  };
  link::Result<Opened> open();
  void close(std::uint32_t number);
  // An event of that channel, if it is there.
  void raise(std::uint32_t number);
  // Runs `receive`, and returns whether that, in this thread, raised an event of the channel: one of them,
  // which then needs no eventfd.
  template <class Receive>
  bool raised_while(std::uint32_t number, Receive receive) {
    Catching caught(*this, number);
    receive();
    return caught.take_one();
  }
  // Its eventfd for a neighbour, if it is there; it stays open during the call.
  void pass_on(std::uint32_t number, const std::function<void(int events)>& send);

  // From now on the sleeper wakes when `port` is readable. False: there is no such channel.
  bool hold(int port);
  void release(int port);
  // In a forked child, whose epoll sets are its parent's.
  void forget_holder() { holder_.store(0, std::memory_order_relaxed); }
  bool holds_port() const { return holder_.load(std::memory_order_relaxed) != 0; }

 private:
  struct Channel {
    link::UniqueFd events, descriptor;
  };
  struct Caught {
    std::uint32_t number;
    std::uint64_t events = 0;
  };
  // Catches this thread's events of a channel while it exists. Those that nobody took go to the eventfd, also
  // when an exception ends the receiving.
  class Catching {
   public:
    Catching(CompletionChannels& channels, std::uint32_t number) : channels_(channels), caught_here_{number} {
      caught_ = &caught_here_;
    }
    ~Catching() {
      caught_ = nullptr;
      if (caught_here_.events != 0) channels_.write(caught_here_.number, caught_here_.events);
    }
    Catching(const Catching&) = delete;
    Catching& operator=(const Catching&) = delete;
    bool take_one() {
      if (caught_here_.events == 0) return false;
      --caught_here_.events;
      return true;
    }

   private:
    CompletionChannels& channels_;
    Caught caught_here_;
  };

  void write(std::uint32_t number, std::uint64_t events);

  static thread_local Caught* caught_;  // while a Catching of this thread exists

  std::mutex mutex_;
  std::map<std::uint32_t, Channel> channels_;
  std::uint32_t next_ = 1;
  std::atomic<std::uint32_t> holder_{0};  // its number; written under mutex_
};

// Whether reads from the descriptor that the program waits on block.
bool is_blocking(int descriptor);

}  // namespace weir::verbs
