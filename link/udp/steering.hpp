// Steers the datagrams of the shared RoCEv2 port to the processes that they are for.
//
// Without it the kernel chooses a process by addresses and ports, which for all datagrams of one other host
// is the same one: it must pass on what is for the others, and while it is stopped none of them hears from
// that host.
//
// The kernel's list of the sockets that share the port has an order, and each process finds its own place in
// it: it sends probes to its own port that come to the socket at a place, and looks which of them it gets. It
// publishes its place as an abstract name ("weir-udp-at-SLOT-PLACE"), and the services that it listens for
// ("weir-udp-for-SLOT-SERVICE"). Other users cannot make up such names for it, programs with other runtime
// directories see them too, and they go with their process. Whoever publishes gives the kernel a program made
// of all names (steering_program.hpp); the last one's has everybody's.
//
// When a process ends, the kernel moves the last socket of the list to its place. The process that this
// happens to finds out because a probe that it sends now and then does not come back, or because another
// process passes a datagram on to it, and looks for its place anew. Until then the kernel chooses
// for it as it would without a program.
//
// Threading: any thread. Nothing waits. Where the kernel takes no program, or nothing comes through loopback,
// it does nothing.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "link/fork_guard.hpp"
#include "link/same_host.hpp"
#include "link/udp/steering_program.hpp"
#include "link/udp/udp_port.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

class Steering final : private ForkAware {
 public:
  static constexpr std::size_t max_services = 16;
  static constexpr std::chrono::milliseconds settle_time{5}, check_interval{100}, longest_pause{10'000};

  struct Options {
    int socket = -1;  // of the port; outlives this
    std::uint16_t port = 0;
    Slot slot = 0;
    SlotShifts shifts;
    std::uint32_t seed = 0;  // of what our probes carry, so that another process's are not taken for ours
    // Once settle_time has passed since the call, and what has arrived meanwhile was taken, call settle().
    std::function<void()> settle_later;
    // Another process looks for its place, perhaps because it began a moment ago.
    std::function<void()> another_looks;
  };
  explicit Steering(Options options);

  // Begins to look for our place: once to begin with, and when a datagram for us came to another process. Not
  // while it is already looking, nor soon after a round that changed nothing.
  void look(Clock::time_point now);
  // Every arrival of the port's. True: it was a probe, and is nobody else's business.
  bool take(const UdpArrival& arrival);
  void settle(Clock::time_point now);
  // After arrivals were taken; cheap. Checks now and then that our place is still ours.
  void check(Clock::time_point now);

  // Requests for that service are for this process. Each listen() needs its own leave(). A process publishes
  // max_services at most.
  void listen(std::uint32_t service);
  void leave(std::uint32_t service);

  // nullopt: not found, or not yet.
  std::optional<std::uint16_t> place() const;
  // Which processes of our user listen for which service. Reads the names of all unix sockets of the
  // namespace.
  static std::vector<std::pair<Slot, std::uint32_t>> listeners() { return published().services; }

 private:
  static constexpr std::uint16_t copies = 4;  // of each probe, from as many ports
  static constexpr std::uint16_t all_copies = (1u << copies) - 1;

  // All with mutex_ held. True: somebody must call settle_later().
  bool begin(Clock::time_point now);
  void probe_all(std::uint16_t from, std::uint16_t to);  // not `to`
  std::optional<std::uint16_t> found() const;
  void publish(std::uint16_t place);
  void give_program();
  struct Published {
    std::vector<PortPlace> places;
    std::vector<std::pair<Slot, std::uint32_t>> services;
    bool operator==(const Published&) const = default;
  };
  static Published published();
  std::vector<sock_filter> program_of(const Published& known) const;
  int give(std::vector<sock_filter> program) const;

  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  void abandon_in_child() override {
    name_.reset();
    services_.clear();
  }

  const Options options_;
  mutable std::mutex mutex_;  // of what follows
  UniqueFd name_;
  std::optional<std::uint16_t> place_;
  struct Service {
    UniqueFd name;
    unsigned listeners = 0;
  };
  std::map<std::uint32_t, Service> services_;
  bool off_ = false;  // the kernel takes no program
  std::size_t most_known_ = max_steered;
  // The round under way.
  bool looking_ = false, second_round_ = false;
  std::uint16_t below_ = 0;  // places below this were probed, or those that are likely
  std::uint32_t nonce_;
  std::map<std::uint16_t, std::uint16_t> came_;  // place -> which copies
  // Between rounds.
  Clock::time_point looked_{};
  std::chrono::milliseconds pause_{0};  // until the next one: longer while they change nothing
  bool checking_ = false;               // probes of place_ are under way
  bool lost_ = false;                   // the last one found nothing: probes are lost
  std::atomic<Clock::rep> next_check_{0};
  ForkRegistration fork_registration_{*this};
};

}  // namespace weir::link
