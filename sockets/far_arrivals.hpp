// What arrives for this process's links to other hosts: one completion queue for all of them, and
// one descriptor to sleep on.
//
// A thread that waits for one link looks here, takes what came for any link, and rings the waiters of the
// other links. So the NIC wakes a thread of the program itself, which continues at once. A thread announces
// its sleep (will_sleep()) and polls fd() beside whatever else it waits for. The service thread answers peers
// while the program is busy elsewhere: if for `nap` no thread has looked and none sleeps here, it sleeps on
// fd() itself. It stops as soon as a thread looks. It checks that every `nap` while the program works, and
// sleeps while all threads do.
//
// An event that wakes one thread is gone for the others, even for one that is only about to sleep. So
// whoever takes it arms the queue again while another thread sleeps here.
//
// Threading: join(), leave(), plan() and take_event() in the service thread, the rest in any thread.
// `mutex_` is taken inside the locks of epoll sets and gates, and outside those of links. Never freed;
// never used in a forked child.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sockets/calls/held_signals.hpp"
#include "sockets/table.hpp"

namespace weir::sockets {

class FarArrivals {
 public:
  // A link as the receiver of its completions; any thread calls it.
  class Receiver {
   public:
    virtual bool take(const ibv_wc& completion) = 0;  // true: call answer()
    virtual void answer() = 0;                        // once for all completions taken together

   protected:
    ~Receiver() = default;
  };

  static constexpr std::uint32_t receives_a_link = 128;
  static constexpr std::chrono::milliseconds nap{4};

  explicit FarArrivals(Table& table) : table_(table) {}

  struct Seat {
    ibv_cq* queue;
    std::uint64_t number;  // `number` * receives_a_link + slot is the wr_id of each receive
  };
  // `service`: the watcher to ring. nullopt: no queue can be had, or its device differs from the first one.
  std::optional<Seat> join(Receiver& link, ibv_context* device, std::uint32_t service);
  // After the queue pair is destroyed. On return no thread uses the link any more.
  void leave(std::uint64_t number);

  void look();
  int fd() const { return channel_ != nullptr ? channel_->fd : -1; }
  void will_sleep();  // this thread, on fd(): new arrivals make it readable. Looks once more
  void awake();
  void woken();  // fd() was readable
  // Some thread waits for a link without this descriptor, so the service thread must always ring it.
  void always_serve();

  // A link has sent something, so the service thread should see that it is acknowledged (transfer.cpp). It
  // looks every now and then until it finds everything acknowledged.
  void expect_answers() {
    if (!expects_answers_.load(std::memory_order_relaxed) && !expects_answers_.exchange(true)) ring_service();
  }
  bool expects_answers() const { return expects_answers_.load(); }
  // All is acknowledged, as far as was seen: look once more after this.
  void expect_no_answers() { expects_answers_.store(false); }

  // How the service thread should sleep.
  struct Plan {
    bool on_fd = false;
    bool naps = false;
  };
  Plan plan();
  void take_event();  // after the service thread slept on fd()

 private:
  enum class Service : std::uint32_t { naps, away, serves };
  void take();
  void take_event_from(std::uint32_t others);
  void disarm();
  void arm();
  void call_service(Service if_it);
  void ring_service();

  Table& table_;
  SectionMutex mutex_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  bool armed_ = false;
  std::uint64_t next_number_ = 1;
  std::unordered_map<std::uint64_t, Receiver*> links_;
  std::vector<Receiver*> touched_;

  std::atomic<std::uint32_t> service_{0};
  std::atomic<Service> state_{Service::naps};
  std::atomic<bool> always_{false}, expects_answers_{false};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint64_t> looks_{0};
  std::uint64_t seen_looks_ = 0;  // service thread
};

}  // namespace weir::sockets
