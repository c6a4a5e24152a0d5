// The next step of one connection (or SIDR service lookup), from its state and what happened, as a table.
//
// The states are those of IBTA 12.9 and 12.11 that remain on a lossless link: no message is lost, so none is
// repeated. The agent decides how long "a while" is, how messages travel and whom events reach. Pure; no
// time, no I/O.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::cm {

enum class State : std::uint8_t {
  idle,
  req_sent,              // active: our REQ is on its way
  req_received_by_peer,  // active: the peer's process has it, its application is thinking
  rep_received,  // active: the answer waits for our application, or for our queue pair to become ready
  req_received,  // passive: our application has the request
  rep_sent,      // passive: accepted, waiting for the RTU
  established,
  dreq_sent,      // we disconnected, waiting for the DREP
  dreq_received,  // the peer disconnected; our application owes the DREP: its rdma_disconnect, or its end,
                  // sends it
  timewait,       // over; one last event is still to come
  sidr_sent,      // active: service lookup on its way
  sidr_received_by_peer,
  sidr_received,  // passive: our application has the lookup
  closed,
};

enum class Input : std::uint8_t {
  // from the application
  connect,
  lookup,  // rdma_connect of an unconnected service
  accept,
  reject,
  establish,
  disconnect,
  force_established,  // rdma_notify(IBV_EVENT_COMM_EST)
  destroy,
  // from the peer
  mra,
  rep,
  rej,
  rtu,
  dreq,
  drep,
  sidr_accepted,
  sidr_refused,
  peer_gone,  // its process ended
  nobody_listens,
  // from the clock
  timeout,
};

enum class Send : std::uint8_t {
  nothing,
  req,
  rep,
  rej_consumer,
  rej_timeout,
  rtu,
  dreq,
  drep,
  sidr_req,
  sidr_accept,
  sidr_refuse
};

// What is reported to the application.
enum class Report : std::uint8_t {
  nothing,
  response,           // a REP; becomes ESTABLISHED where we have the queue pair
  rejected_by_peer,   // status and private data are the message's
  rejected_consumer,  // status 28: the peer vanished, as its kernel would have said for it
  rejected_no_service,
  unreachable_timeout,
  unreachable_refused,  // a lookup's refusal; status is the message's
  unreachable_no_service,
  established,
  lookup_answered,
  disconnected,
  timewait_exit,
};

// Which timer runs in the new state. Entering a state always stops the previous one; as_before leaves it.
enum class Timer : std::uint8_t { none, delivery, answer, ready, disconnect, timewait, as_before };

struct Step {
  State next;
  Send send = Send::nothing;
  Report report = Report::nothing;
  Timer timer = Timer::none;
};

// Nothing: `input` is not allowed in `state`. For the application that is EINVAL; from a peer it is ignored.
std::optional<Step> step(State state, Input input);

}  // namespace weir::cm
