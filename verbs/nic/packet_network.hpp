// The ways of packets: to other hosts, by the UDP port of RoCEv2, opened when something first needs it; to
// programs of other users of this host, by the sockets of link/users.
//
// A program that only talks on its host opens no port (docs/verbs.md says what opens it). `WEIR_WIRE=0` says
// that none is ever opened, and that other users do not reach it either.
//
// Threading: all functions from any thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "link/fork_guard.hpp"
#include "link/same_host.hpp"
#include "link/udp/steering.hpp"
#include "link/udp/udp_port.hpp"
#include "link/users/group_members.hpp"
#include "link/users/user_port.hpp"
#include "rnic/adapter.hpp"
#include "verbs/nic/admission.hpp"
#include "verbs/nic/completion_channels.hpp"
#include "verbs/nic/drop_report.hpp"
#include "verbs/nic/management_port.hpp"
#include "verbs/nic/packet_device.hpp"
#include "verbs/nic/packet_watch.hpp"
#include "wire/mad.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {

// An address for people.
std::string text_of(const rnic::Gid& gid);

// "0": no packets to other hosts.
inline constexpr char wire_variable[] = "WEIR_WIRE";
// "1": packets also to our own addresses, between processes that could use shared memory (`weir run
// --packets`).
inline constexpr char packets_variable[] = "WEIR_PACKETS";
// "0": packets do not say that switches may mark them.
inline constexpr char ecn_variable[] = "WEIR_ECN";

class PacketNetwork final : public PacketDevice, private PacketWatch::Port, private link::ForkAware {
 public:
  // All outlive it; the link's thread then calls the adapter when packets come.
  PacketNetwork(link::SameHostLink& link, rnic::Adapter& adapter, CompletionChannels& channels,
                hash::SipKey key)
      : link_(link), adapter_(adapter), channels_(channels), admission_(link, rnic::qp_index_bits, key) {}
  PacketNetwork(const PacketNetwork&) = delete;
  PacketNetwork& operator=(const PacketNetwork&) = delete;

  // From now on our own packets leave through `device`, which stands in front of this one and outlives it.
  void leave_through(PacketDevice& device) { front_ = &device; }

  static bool switched_off();
  static bool within_this_host();
  static bool says_ecn_capable();
  // Call before the link ends; afterwards nothing calls us any more.
  void stop();

  // Another way for packets, in front of this one: it opens with the port, or keeps that closed by its error.
  // A probe of the port at the other end says nothing about what it carries.
  struct OtherWay {
    std::function<link::Result<void>()> open;
    std::function<bool(const rnic::PacketRoute&)> carries;
  };
  void open_with(OtherWay way) { other_way_ = std::move(way); }  // before the first open()
  // From now on packets come from other hosts. The error is text to print.
  link::Result<void> open();
  // Likewise for packets from other users' programs, if the kernel can identify their senders. Call once.
  void open_to_other_users();
  // A process that exits has answered what had arrived, and passed on what came for others with whom it
  // shares the port.
  void finish();
  // The process of another user in that slot, as a number that is never reused; 0: there is none.
  std::uint64_t process_in(rnic::Slot slot) { return users_ ? users_->process_in(slot) : 0; }
  std::uint64_t known_process_in(rnic::Slot slot) { return users_ ? users_->known_in(slot) : 0; }
  // Decides whether an address is this host's; until it is set, no address is.
  using IsOurs = bool (*)(const rnic::Gid& address);
  void set_is_ours(IsOurs who_says) { is_ours_.store(who_says); }
  bool is_ours(const rnic::Gid& address) const {
    const IsOurs asked = is_ours_.load();
    return asked != nullptr && asked(address);
  }
  link::UserPort* users() { return users_.get(); }
  // The multicast groups of other users' processes; nullptr: they do not reach us.
  link::GroupMembers* members() { return members_.get(); }
  // Runs on the link's thread when such a process has ended. Set it once, before it is needed.
  using GoneHandler = std::function<void(std::uint64_t process)>;
  void on_process_gone(GoneHandler handler);
  // Whether a datagram queue pair of this NIC was ever ready (verbs/ibv/datagram_reception.hpp).
  void take_datagrams() {
    takes_datagrams_.store(true);
    admission_.take_datagrams();
  }
  Admission& admission() { return admission_; }
  bool takes_datagrams() const { return takes_datagrams_.load(); }
  // Joins a group on an interface once the port is open; GroupMemberships counts the users of a group.
  // Returns 0, or an errno like UdpPort::join().
  int join(const rnic::Gid& group, std::uint32_t interface);
  void leave(const rnic::Gid& group, std::uint32_t interface);
  // What rnic::HostPort needs from it.
  void send(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs) override;
  std::size_t packets_in_run(const rnic::PacketRoute& route) const override;
  void receive(const rnic::HostPort::PacketSink& sink) override;
  void event_wanted() { watch_.event_wanted(); }
  // A channel was opened, or will be closed: until the next packets the link's thread waits for them.
  void channels_change() { watch_.channels_change(); }
  // Whether packets wake the sleeper of a completion channel, who then takes them.
  bool wakes_sleeper() const { return channels_.holds_port(); }
  bool holds_packets() override;  // from other hosts
  // See ManagementPort.
  void listens(std::uint32_t service);
  void listens_no_more(std::uint32_t service);
  // Another process had to pass on a packet of ours from the port that we share.
  void misled();

  // Datagrams to queue pair 1, on the link's thread. Once, before open().
  using ManagementHandler = std::function<void(const ManagementRoute& came, std::span<const std::byte>)>;
  void on_management(ManagementHandler handler);
  void receive_management(const rnic::PacketDatagram& datagram, const wire::Packet& packet);
  // From queue pair 1 of that address of ours to queue pair 1 there; may be lost.
  void send_management(const rnic::PacketRoute& route, std::span<const std::byte> mad);
  // The same by a socket that hears if nobody has the port there; nullptr: it was not sent.
  std::unique_ptr<link::PortProbe> ask(const rnic::PacketRoute& route, std::span<const std::byte> mad);

 private:
  struct ManagementPacket {
    std::array<std::byte, wire::longest_headers + wire::mad_bytes + wire::icrc_bytes> room{};
    std::uint16_t length = 0;
    std::span<const std::byte> bytes() const { return std::span(room).first(length); }
  };

  ManagementPacket management_packet(const rnic::PacketRoute& route, std::span<const std::byte> mad,
                                     std::uint16_t source_port);
  int send_some(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs, std::span<bool> went);
  int carry(const rnic::PacketRoute& route, std::span<const rnic::PacketRun> runs, std::span<bool> went);
  void receive_from_hosts(link::UdpPort& port, const rnic::HostPort::PacketSink& sink);
  void receive_from_users(const rnic::HostPort::PacketSink& sink);
  void handle_process_end(std::uint64_t process);
  void finish_with_users();
  void finish_with_hosts();
  void explain_failure(int error, const rnic::PacketRoute& route);
  void packets_came();
  void report_drops(link::Clock::time_point now);
  void settle_steering();
  void wait_for_packets(bool) override;
  bool has_sleepers() override { return adapter_.has_armed_cq(); }
  bool lend_to_sleeper() override;
  void take_from_sleeper() override;
  void wake_at(std::uint64_t now_ns) override;
  // The child has copies of what this thread has not sent yet.
  void lock_for_fork() override { adapter_.departures().will_sleep(); }
  void unlock_after_fork() override {}
  void abandon_in_child() override { channels_.forget_holder(); }

  link::SameHostLink& link_;
  rnic::Adapter& adapter_;
  CompletionChannels& channels_;
  PacketDevice* front_ = this;
  OtherWay other_way_;
  Admission admission_;
  std::mutex mutex_;
  std::unique_ptr<link::UdpPort> port_;
  std::unique_ptr<link::Steering> steering_;  // of that port; set before open_
  std::atomic<link::UdpPort*> open_{nullptr};
  PacketWatch watch_{*this};               // of that port
  std::unique_ptr<link::UserPort> users_;  // from open_to_other_users() on, as the next
  std::atomic<bool> users_spoke_{false};   // packets have come from them
  std::unique_ptr<link::GroupMembers> members_;
  // Inside port_->receive() and users_->receive(), each of which only one thread is in at a time.
  std::vector<rnic::PacketDatagram> from_hosts_, from_users_;
  DropReport drop_report_;  // under the adapter's lock, as is the next
  link::Clock::time_point drops_looked_at_{};
  GoneHandler gone_;  // under mutex_
  std::shared_ptr<const ManagementHandler> management_;
  std::atomic<std::uint32_t> management_psn_{0};
  std::atomic<bool> takes_datagrams_{false};
  std::atomic<IsOurs> is_ours_{nullptr};
  link::ForkRegistration fork_registration_{*this};
};

}  // namespace weir::verbs
