// Which packets of the shared RoCEv2 port are looked at: known destinations and sources first, then as many
// of strangers' as their budgets allow.
//
// The port is open to everybody who can send to this host, and a packet of 60 bytes costs nothing. So what
// decides here costs no system call: which slots of this host are taken is remembered, also of those that are
// not; and the kernel's filter (link/udp/arrival_filter.hpp) follows who our peers are. A refusal is counted
// (rnic::Dropped). While strangers send the connection manager more than it takes, the kernel drops what is
// too much (link/udp/stranger_cut.hpp), so that the peers' packets find room in the receive buffer.
//
// Threading: all functions from any thread.
#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "link/same_host.hpp"
#include "link/udp/source_budget.hpp"
#include "link/udp/stranger_cut.hpp"
#include "rnic/peer.hpp"

namespace weir::verbs {

class Admission {
 public:
  // Processes come and go: who is where is looked up no more often than this, whatever arrives.
  static constexpr std::chrono::milliseconds look_interval{100};
  // A process that is there and not connected is dialled this often.
  static constexpr std::chrono::milliseconds dial_interval{1'000};
  // Requests of one network: some thousands of connections a second. What is passed on goes by a system call
  // each, at both ends.
  static constexpr link::SourceBudget::Rate management_of_network{5'000, 4'000},
      management_of_all{10'000, 8'000};
  static constexpr link::SourceBudget::Rate passed_of_network{20'000, 8'000}, passed_of_all{40'000, 16'000};

  // `slot_shift`: of a slot in a queue pair number. The link outlives it.
  Admission(const link::SameHostLink& link, unsigned slot_shift, hash::SipKey key)
      : link_(link),
        slot_shift_(slot_shift),
        management_(management_of_network, management_of_all, key),
        passed_(passed_of_network, passed_of_all, key),
        cut_(static_cast<std::uint32_t>(hash::siphash(key, std::uint64_t{0}))) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Runs something after that time.
  using Later = std::function<void(std::chrono::milliseconds, std::function<void()>)>;
  // From now on the kernel filters for this socket. What runs later must not outlive this.
  void filter(int socket, Later later);
  // Our queue pairs expect packets from there; counted.
  void expect(const link::IpAddress& peer);
  void expect_no_more(const link::IpAddress& peer);
  // And datagrams from anywhere.
  void take_datagrams();

  std::optional<rnic::Dropped> refuse_management(const rnic::PacketDatagram&, const wire::Packet&,
                                                 link::Clock::time_point now);
  std::optional<rnic::Dropped> refuse_passing_on(rnic::Slot, const rnic::PacketDatagram&,
                                                 link::Clock::time_point now);
  // A process may have begun: looks who is in which slot, before the next look is due.
  void look_again();
  // Whether a process of our runtime directory has that slot.
  bool is_occupied(rnic::Slot slot, link::Clock::time_point now);
  // Whether to dial a process to which packets are passed on, and that is not connected.
  bool may_dial(rnic::Slot slot, link::Clock::time_point now);

 private:
  using Slots = std::bitset<link::max_slots>;
  void look(link::Clock::time_point now);
  void give_filter();
  void cut_strangers();
  void end_window_later();
  link::SourceBudget::Is known(const rnic::PacketDatagram&) const;

  const link::SameHostLink& link_;
  const unsigned slot_shift_;
  std::mutex mutex_;  // of what follows
  int socket_ = -1;
  std::map<link::IpAddress, unsigned> peers_;
  bool datagrams_ = false;
  Slots occupied_;
  link::Clock::time_point looked_{};
  std::map<rnic::Slot, link::Clock::time_point> dialled_;
  link::SourceBudget management_, passed_;
  link::StrangerCut cut_;
  Later later_;
  bool window_ends_ = false;  // later
};

}  // namespace weir::verbs
