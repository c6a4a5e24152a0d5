// What comes for the links to other hosts of this process: one completion queue for all of them, and one
// descriptor to sleep on.
//
// Whoever waits for a link looks here, and takes what came for any link; the waiters of the others are rung.
// So the NIC wakes a thread of the program itself, which goes on at once. A thread that sleeps says so
// (will_sleep()) and has fd() beside what else it waits for. The service thread answers peers while the
// program is elsewhere: it sleeps on fd(), too, if no thread has looked for `nap` and none sleeps here, and
// leaves it alone as soon as one does. While the program is at work it looks at that each `nap`; while all
// sleep, it does as well.
//
// Threading: join(), leave(), plan() and take_event() in the service thread, the rest any thread. `mutex_` is
// taken inside the locks of epoll sets and gates, and before those of links. Never freed; never used in a
// forked child.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sockets/held_signals.hpp"
#include "sockets/table.hpp"

namespace weir::sockets {

class FarArrivals {
 public:
  // A link, as what comes for it is taken: by any thread.
  class Receiver {
   public:
    virtual bool take(const ibv_wc& completion) = 0;  // true: answer() is to be called
    virtual void answer() = 0;                        // once for all that was taken together

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
  // `service`: the watcher to ring. Nothing: no queue can be had, or it is of another device than the first.
  std::optional<Seat> join(Receiver& link, ibv_context* device, std::uint32_t service);
  // Its queue pair is destroyed. Nobody is at the link any more when this returns.
  void leave(std::uint64_t number);

  void look();
  int fd() const { return channel_ != nullptr ? channel_->fd : -1; }
  void will_sleep();  // this thread, on fd(): what comes from now on makes it readable. Looks once more
  void awake();
  void woken();  // fd() was readable
  // Somebody waits for a link without this descriptor: the service thread is to ring it always.
  void always_serve();

  // How the service thread is to sleep.
  struct Plan {
    bool on_fd = false;
    bool naps = false;
  };
  Plan plan();
  void take_event();  // it slept on fd()

 private:
  enum class Service : std::uint32_t { naps, away, serves };
  void take();
  void disarm();
  void arm();
  void call_service(Service if_it);

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
  std::atomic<bool> always_{false};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint64_t> looks_{0};
  std::uint64_t seen_looks_ = 0;  // service thread
};

}  // namespace weir::sockets
