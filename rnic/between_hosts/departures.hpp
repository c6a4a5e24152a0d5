// Short packets that wait for others of their kind, so that they leave in runs.
//
// What a packet costs is its way through the kernel, and a run (packets of one length to one destination, of
// whatever queue pairs) goes that way once: fifty packets in a run cost what two cost alone. So while a
// thread has several completions to answer, its packets are laid out here, sorted by length, as long as there
// is more to answer. One that got a single completion, or none, sends at once: a message there and back is
// not held up.
//
//   a post        leaves at once, unless the thread's polls returned two completions or more in a row
//   what is held  leaves with the last of as many posts as there were completions, unless more packets have
//                 arrived by then; when it is 64 packets or 16 KiB; when a poll finds nothing, nor packets;
//                 before the thread sleeps; when the queue pair is closed
//   the watchdog  a thread that does none of this: after 0.2 ms the link's thread lets its packets go, after
//                 1 ms where the program had long been quicker than that
//   arrivals      answers to the packets that arrived together leave together, whoever took those
//
// Packets of one queue pair keep their order; requests and answers have an order each.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "rnic/memory/spin_lock.hpp"
#include "rnic/packet/outgoing.hpp"
#include "rnic/peer.hpp"
#include "wire/icrc.hpp"

namespace weir::rnic {

class Departures;

// Those of one thread. Threading: leave() from any thread, everything else from the thread whose it is.
class DepartureStage {
 public:
  // Where the last packet of a sequence lies that must keep its order. Guarded by the lock of that sequence.
  struct Place {
    std::shared_ptr<DepartureStage> stage;  // nullptr: none was ever held
    std::uint64_t departure = 0;            // it has left if the stage has a later one
    std::size_t bucket = 0;

    // The packet has left, or leaves now: the next one may go another way.
    void settle() {
      if (stage != nullptr && departure == stage->departure_.load(std::memory_order_acquire)) stage->leave();
    }
    bool lies_in(const DepartureStage& here) const { return stage.get() == &here; }
    // The next packet comes behind that one, too.
    void follow(const Place& other);
  };
  // Everything that the thread sends meanwhile leaves at the end.
  class Round {
   public:
    explicit Round(const std::shared_ptr<DepartureStage>& stage) : stage_(stage) { ++stage_->rounds_; }
    ~Round() {
      if (--stage_->rounds_ == 0 && stage_->unanswered_ == 0) stage_->leave();
    }
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

   private:
    const std::shared_ptr<DepartureStage> stage_;
  };

  explicit DepartureStage(Departures& of) : of_(&of) {}
  DepartureStage(const DepartureStage&) = delete;
  DepartureStage& operator=(const DepartureStage&) = delete;

  // ---- what the thread does
  // A poll of a completion queue whose queue pairs send packets returned so many; 0: and no packet had
  // arrived.
  void polled(std::size_t completions);
  // One that returned nothing took packets.
  void found_more();
  // It will sleep, or give its packets up to somebody else's care.
  void will_sleep() {
    unanswered_ = 0;
    leave();
  }
  // It has posted, and holds no lock of a queue pair any more.
  void posted() {
    if (rounds_ != 0 || unanswered_ == 0) return;
    --unanswered_;
    if (unanswered_ == 0) answered_all();
  }

  // What is added now waits for more.
  bool holds() const { return rounds_ != 0 || unanswered_ != 0; }
  // Copying it costs less than its way through the kernel. What is part of a longer message is not: that
  // message's packets are a run by themselves.
  static bool is_short(const packet::Outgoing& packet);
  // Copies it. False: its payload cannot be read, and it is not there. `run_limit`: packets in a run.
  bool add(const PacketRoute& route, const wire::IcrcRoute& icrc, const packet::Outgoing& packet,
           std::size_t run_limit, Place& place);
  void leave();

 private:
  friend class Departures;
  static constexpr std::size_t max_routes = 8, max_packets = 64, max_bytes = 16 * 1024;
  static constexpr std::uint32_t max_unanswered = 256, polls_held = 16;

  struct Route {
    PacketRoute route;
    wire::IcrcRoute icrc;
  };
  struct Bucket {
    std::size_t route = 0, length = 0;
    std::vector<Qpn> from;  // of each packet
    std::vector<std::byte> bytes;
  };

  void answered_all();
  std::size_t route_of(const PacketRoute&, const wire::IcrcRoute&);
  std::size_t bucket_of(std::size_t route, std::size_t length, std::size_t run_limit, std::size_t not_before);
  void leave_locked();
  void send_route(std::size_t route);
  void close();

  // The thread's own.
  std::uint32_t rounds_ = 0, unanswered_ = 0, in_a_row_ = 0, polls_since_ = 0;
  bool found_nothing_ = true;

  SpinLock lock_;
  Departures* of_;  // nullptr: the NIC is gone. Under the lock, as what follows.
  std::vector<Route> routes_;
  std::vector<Bucket> buckets_;  // the first used_ of them
  std::size_t used_ = 0, bytes_ = 0;
  std::atomic<std::size_t> packets_{0};  // 0: nothing is held
  std::atomic<std::uint64_t> departure_{1}, since_ns_{0};
};

// Those of all threads of one NIC. Threading: any thread.
class Departures {
 public:
  explicit Departures(HostPort& host);
  ~Departures();
  Departures(const Departures&) = delete;
  Departures& operator=(const Departures&) = delete;

  // This thread's, made for a thread that sends packets or polls for them.
  DepartureStage& here();
  // The same, as a place needs it.
  const std::shared_ptr<DepartureStage>& shared_here();
  // This thread's, if it has one, lets go what it holds.
  void will_sleep();
  // The watchdog's turn, which HostPort::watch_departures_at() asked for.
  void leave_overdue();
  void leave_all();  // waits for nobody

 private:
  friend class DepartureStage;
  static constexpr std::uint64_t shortest_watch_ns = 200'000, longest_watch_ns = 1'000'000;

  struct Mine;
  void watch(std::uint64_t now_ns);
  std::vector<std::shared_ptr<DepartureStage>> all();

  HostPort& host_;
  const std::uint64_t serial_;  // no other NIC of this process has it
  std::mutex mutex_;
  std::vector<std::shared_ptr<DepartureStage>> stages_;
  std::atomic<bool> watched_{false};
  std::atomic<std::uint64_t> watch_ns_{shortest_watch_ns};
};

}  // namespace weir::rnic
