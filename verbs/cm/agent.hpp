// The process's communication manager: its identifiers, its listeners, and the messages between them and
// those of other processes.
//
// It applies connection_state's table: a call of the application, a message, the end of a neighbour or a
// timer becomes an Input; the Step says what to send, which event to report and which timer to run.
//
// Threading: every function from any thread, except where it says progress thread. mutex_ guards all state.
// The link's callbacks take it, so nothing is done under it that could wait for the link (no ibv_* call, no
// blocking connect). Functions return 0 or an errno.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "link/same_host.hpp"
#include "verbs/cm/devices.hpp"
#include "verbs/cm/identifier.hpp"
#include "verbs/cm/packet_carrier.hpp"
#include "verbs/cm/peer_watch.hpp"
#include "verbs/cm/port_space.hpp"
#include "verbs/cm/requests/request_gate.hpp"
#include "verbs/cm/requests/waiting_requests.hpp"

namespace weir::cm {

struct Limits {
  std::chrono::milliseconds delivery{10'000};  // until the peer's process has our request
  std::chrono::milliseconds answer{120'000};   // until its application has answered
  std::chrono::milliseconds ready{30'000};     // until the peer is ready to use what we accepted
  std::chrono::milliseconds crowded{4'000};    // the same, of unproved peers while many of them wait
  std::chrono::milliseconds disconnect{5'000};
  std::chrono::milliseconds timewait{1'000};
  // How many times, and at what interval, we look for a listener before we report that there is none.
  int looks = 40;
  std::chrono::milliseconds look_interval{5};
  // How often connections with other hosts ask whether their peers are still there.
  std::chrono::milliseconds peer_interval{5'000};
};
inline constexpr int max_backlog = 1024;
// The limit of one process's connections in progress to one listener: requested, or accepted and not ready.
// Less than the usual backlog of 511, so that one process cannot fill it.
inline constexpr int max_on_the_way = 384;
inline constexpr std::size_t max_own_events = 1024;

class Agent {
 public:
  // The process's; made on first use, anew in a forked child. nullptr and errno: no link, no NIC.
  static Agent* instance();

  // Handles the link's CM messages, and those of other hosts. Both outlive this; without the second there are
  // no other hosts.
  Agent(link::SameHostLink& link, Limits limits, verbs::ManagementPort* management = nullptr);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  Devices& devices() { return devices_; }

  Id* create(EventChannel& channel, void* context, rdma_port_space port_space, ibv_qp_type qp_type);
  // Waits until all its events are acknowledged.
  void destroy(Id& id);
  // Moves the identifier and its queued events, and for a listener also the requests they report; waits until
  // the events already taken are acknowledged.
  void migrate(Id& id, EventChannel& to);

  int bind(Id& id, const sockaddr* address);
  int resolve_address(Id& id, const sockaddr* source, const sockaddr* destination);
  int resolve_route(Id& id);
  int listen(Id& id, int backlog);

  // The application's steps. `mine` carries queue pair, parameters and private data.
  int connect(Id& id, CmMessage mine);
  int accept(Id& id, CmMessage mine);
  int reject(Id& id, std::span<const std::byte> private_data);
  int apply_local(Id& id, Input input);  // establish, disconnect, force_established
  bool end_is_to_be_told(Id& id);        // an event about the end of its connection is still to come

  void deliver(Id& id, EventPtr event);
  // Queues an event of the application's own making. ENOBUFS: it does not take those it has.
  int tell(Id& id, int type, int status, std::uint64_t argument);

  // The process ends. Peers on other hosts hear of the ends of its connections, as when the kernel destroys
  // the identifiers of a process that exits. Those on this host see the process end.
  void leave();

  void taken(const Event& event);         // the application has it
  void acknowledged(const Event& event);  // and is done with it

 private:
  // mutex_ held in all of these. `cause`: the message that was the input, if one was.
  bool apply(Id& id, Input input, const CmMessage* cause = nullptr);
  void transmit(Id& id, Send what);
  link::Result<void> send_message(const link::NeighbourPtr& to, const CmMessage& message);
  static bool is_remote(const link::NeighbourPtr& neighbour);
  static bool is_unproved(const link::NeighbourPtr& neighbour);
  void send_request(Id& id);
  void ask_other_users(Id& id);
  Id* asking(std::uint32_t local_id);
  void look_again(Id& id);
  void explain_nobody_listens(const Id& id);
  void report(Id& id, Report what, const CmMessage* cause);
  void push(Id& id, EventPtr event);
  void start_timer(Id& id, Timer which);
  Id* find(std::uint32_t local_id);
  void forget(const Id& id);
  Id* find(const link::NeighbourPtr& from, const CmMessage& message);
  Id* listener_for(const CmMessage& request) const;
  void receive_request(const link::NeighbourPtr& from, CmMessage message);
  void receive_answer(const link::NeighbourPtr& from, const CmMessage& message);
  void repeat_answer(const Id& id, const CmMessage& message);
  static CmMessage ready_to_use(const Id& id);
  static std::optional<PeerWatch::Question> question_about(const Id& id);
  void watch_peer(const Id& id);
  void look_later();
  void look_after_peers();
  Id* requested_by(const link::NeighbourPtr& from, std::uint32_t request_id) const;
  void repeat_patience(const Id& id);
  bool admits(const link::NeighbourPtr& from, const CmMessage& request);
  void update_half_open(Id& id);
  bool wait_for_listener(const link::NeighbourPtr& from, const CmMessage& request);
  void look_for_listener(std::uint64_t waiting, int looks);
  void refuse_request(const link::NeighbourPtr& from, const CmMessage& request, RejectReason reason);
  bool makes_room(const link::NeighbourPtr& from, Id& listener);
  static RequestSource source_of(const link::NeighbourPtr& from);
  static void leave_queue(Id& request);
  enum class Seat : bool { taken_over, left };
  void forget_ended(Id& request, Seat seat);
  int on_the_way(const link::NeighbourPtr& from, const Id& listener) const;
  Id* make_passive(const Id& listener, const Devices::Place& place, const link::NeighbourPtr& from,
                   CmMessage message);
  std::uint32_t new_local_id();
  link::Slot owner_of(const CmMessage& message);
  void place(Id& id, const Devices::Place& where);

  // Progress thread.
  void received(const link::NeighbourPtr& from, link::Message&& message);
  void received(const link::NeighbourPtr& from, std::optional<CmMessage> message);
  void request_connected(std::uint32_t local_id, const PortOwner& owner,
                         const link::Result<link::NeighbourPtr>& got);
  void timer_fired(std::uint32_t local_id, std::uint32_t round);
  void gone(const link::NeighbourPtr& who);

  bool lives(const PortOwner& owner);
  Endpoint ephemeral(Endpoint endpoint);
  int serve(Id& id, const Binding& binding);

  link::SameHostLink& link_;
  const Limits limits_;
  Devices devices_;
  PortSpace ports_;
  std::unique_ptr<PacketCarrier> packets_;
  std::unique_ptr<PeerWatch> watch_;  // where there are packets; used by the link's thread alone

  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::map<std::uint32_t, Id*> ids_;
  std::map<std::pair<const link::Neighbour*, std::uint32_t>, Id*>
      requested_;     // passive ones, by their request
  RequestGate gate_;  // of other hosts' requests
  std::vector<Id*> listeners_;
  bool watching_ = false;  // a timer of look_after_peers() runs
  WaitingRequests waiting_requests_;
  const hash::SipKey number_key_;  // of the order of local_ids
  std::uint32_t numbers_drawn_ = 0;
  std::uint16_t next_ephemeral_;
};

}  // namespace weir::cm
