// How two ends on two hosts find each other and connect their queue pairs, over rdma_cm.
//
// The end whose program connected asks: it calls rdma_connect with the same address and port number, and its
// request holds the connection's addresses and a proof of its first bytes. The end that accepted listens on
// that port number, unless another process of its host does, and on a port of its own, which is in the table.
// A process that is asked for another process's connection refuses and names that port. Then each end says
// hello (far_messages.hpp). Both check that they have seen the same bytes and that the other knows the user's
// secret (seal.hpp). Any other request costs us a look at 56 bytes.
//
// Each step has a deadline. While nothing is known of an address, only one connection asks there, and the
// others wait for its result. Refusals are remembered (refusals.hpp). At most `most_asking` connections ask
// at once, and at most `most_unknown` requests wait.
//
// Threading: service thread only. A forked child makes its own.
#pragma once

#include <rdma/rdma_cma.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "sockets/far_arrivals.hpp"
#include "sockets/far_end.hpp"
#include "sockets/far_events.hpp"
#include "sockets/far_link.hpp"
#include "sockets/far_listeners.hpp"
#include "sockets/refusals.hpp"
#include "sockets/seal.hpp"

namespace weir::sockets {

class FarPairing {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit FarPairing(Table& table) : table_(table) {}
  FarPairing(const FarPairing&) = delete;
  FarPairing& operator=(const FarPairing&) = delete;

  void seek(FarEnd& end);    // `end` has a place in the table; its peer is on another host
  void forget(FarEnd& end);  // `end` is closed; call it before its link is destroyed
  const FarEvents& events() const { return events_; }
  FarArrivals& arrivals() { return arrivals_; }
  void look();                                // handles what has arrived meanwhile
  std::optional<TimePoint> deadline() const;  // of the next step; nullopt: nothing is pending
  void expire(TimePoint now);

 private:
  enum class Stage { queued, resolving, connecting, pausing, awaited, greeting };
  struct Seat {  // an end that is not linked yet
    FarEnd* end = nullptr;
    Stage stage = Stage::queued;
    FarAddress target;       // the address to ask
    std::uint32_t port = 0;  // the port asked now
    TimePoint deadline{}, again_at{};
    std::chrono::milliseconds pause{50};
    rdma_cm_id* id = nullptr;
    std::unique_ptr<FarLink> link;
  };
  struct Linked {
    rdma_cm_id* id;
    FarLink* link;  // owned by the connection
  };
  struct Unknown {  // a request for a connection that nobody has yet
    rdma_cm_id* id;
    FarRequest request;
    TimePoint until;
  };

  void await(Seat& seat);
  void ask(Seat& seat);
  void ask_next(const FarAddress& target);
  bool may_ask(const FarAddress& target) const;
  void drop(Seat& seat);  // destroys its identifier and link
  void fail(Seat& seat, Reason why);
  void fail_queued(const FarAddress& target);
  void refuse(rdma_cm_id* id, std::uint32_t ask_port);
  void handle(const rdma_cm_event& event);
  void handle(Seat& seat, const rdma_cm_event& event);
  void connect(Seat& seat);
  void refused(Seat& seat, const rdma_cm_event& event);
  void requested(rdma_cm_id* id, std::span<const std::byte> data);
  bool answer(const Unknown& asked);  // false: nobody has the connection yet
  bool send_elsewhere(const Unknown& asked);
  void accept(Seat& seat, const Unknown& asked);
  void greet(Seat& seat);
  void judge(Seat& seat);
  void linked(Seat& seat);
  Conversation conversation_of(const FarEnd& end, Speaker speaker) const;

  static constexpr std::size_t most_asking = 64, most_unknown = 64, most_taking = 1024;

  Table& table_;
  FarEvents events_;
  FarArrivals arrivals_{table_};
  FarListeners listeners_;
  std::unordered_map<FarEnd*, std::unique_ptr<Seat>> seats_;
  std::unordered_map<rdma_cm_id*, Seat*> by_id_;
  std::unordered_map<FarEnd*, Linked> linked_;
  std::unordered_map<rdma_cm_id*, FarLink*> linked_by_id_;
  std::vector<Unknown> unknown_;
  std::set<FarAddress> taking_;  // these have accepted RDMA before
  Refusals refusals_;
  std::uint64_t network_namespace_ = 0;
};

}  // namespace weir::sockets
