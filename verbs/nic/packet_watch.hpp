// Who waits for the packets of a port: the link's thread, a thread of the program that polls, or one that
// sleeps until a completion channel's descriptor is readable.
//
// Each may take packets at any time. But a packet wakes the link's thread even if a poller takes it first,
// and where both have one processor that costs more than the packet. So while a program polls often, the port
// is lent to it: the link's thread no longer waits for packets, and looks once in a `nap` whether the program
// still polls. It waits again as soon as somebody arms a completion queue, because that thread will sleep;
// and one that sleeps between packets is not lent the port as a poller, because each time would cost two
// system calls.
//
// A program that is woken for packets again and again, each time by the link's thread, is woken twice: so
// after `wakes_before` times in a row the port is lent to the sleeper, whose descriptor then is readable when
// packets are there. The link's thread looks after each `doze` whether the program took any, and waits for
// them itself if it did not: an idle port costs no wake-up.
//
// Not every poller polls for what arrives: some poll memory that a peer writes, and completions only in
// between; and a sleeper may do other things before it sleeps. Their packets would wait for the end of a nap.
// Once that has happened nothing is lent for a while, each time for longer.
//
// Threading: polled(), event_wanted() and channels_change() from any thread, the rest in the link's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace weir::verbs {

class PacketWatch {
 public:
  class Port {
   public:
    virtual void wait_for_packets(bool wanted) = 0;   // in the link's thread; from any thread
    virtual bool holds_packets() = 0;                 // that nobody has taken
    virtual bool has_sleepers() = 0;                  // a completion queue is armed
    virtual void wake_at(std::uint64_t time_ns) = 0;  // nap_over() in the link's thread
    // The sleeper is woken by packets from now on; false: by events only, as before.
    virtual bool lend_to_sleeper() = 0;
    virtual void take_from_sleeper() = 0;

   protected:
    ~Port() = default;
  };

  static constexpr std::uint64_t nap_ns = 500'000;
  static constexpr std::uint64_t recently_ns = 50'000;  // how long ago a poller's last poll may be
  static constexpr std::uint32_t polls_in_a_nap = 10;   // fewer are not often
  static constexpr std::uint64_t doze_ns =
      1'000'000;  // packets that come less often are left to the link's thread
  static constexpr std::uint32_t wakes_before = 8;  // of a sleeper, with no pause between
  static constexpr std::uint64_t first_pause_ns = 100'000'000, longest_pause_ns = 10'000'000'000;

  explicit PacketWatch(Port& port) : port_(port) {}

  // A poller has taken what had arrived.
  void polled(std::uint64_t now_ns) {
    polled_ns_.store(now_ns, std::memory_order_relaxed);
    polls_.fetch_add(1, std::memory_order_release);
  }
  // After a completion queue was armed.
  void event_wanted() {
    if (!wanted_.load(std::memory_order_relaxed)) wanted_.store(true, std::memory_order_relaxed);
    if (lent_.load(std::memory_order_seq_cst) == Lent::to_poller) take_back();
  }
  // Who would be woken is to be found out anew.
  void channels_change() {
    if (lent_.load(std::memory_order_seq_cst) == Lent::to_sleeper) take_back();
  }
  // The link's thread was woken by packets, and has taken them.
  void woken(std::uint64_t now_ns);
  void nap_over(std::uint64_t now_ns);

 private:
  enum class Lent : std::uint8_t { no, to_poller, to_sleeper };

  void take_back();
  void consider_sleeper(std::uint64_t now_ns, bool wanted);
  void consider_poller(std::uint64_t now_ns);
  void nap_until(std::uint64_t end_ns);
  std::uint32_t new_polls();
  bool polled_within(std::uint64_t ns, std::uint64_t now_ns) const {
    return now_ns < polled_ns_.load(std::memory_order_relaxed) + ns;
  }

  Port& port_;
  std::atomic<std::uint32_t> polls_{0};
  std::atomic<std::uint64_t> polled_ns_{0};
  std::atomic<Lent> lent_{Lent::no};  // written under mutex_
  std::atomic<bool> wanted_{false};   // an event, since the last packet
  std::mutex mutex_;
  // In the link's thread.
  std::uint32_t seen_polls_ = 0;
  bool naps_ = false;
  std::uint64_t not_before_ns_ = 0, pause_ns_ = first_pause_ns, lent_since_ns_ = 0;
  std::uint32_t wakes_ = 0;  // of a sleeper, since the last pause
  std::uint64_t woken_ns_ = 0, sleeper_not_before_ns_ = 0;
};

}  // namespace weir::verbs
