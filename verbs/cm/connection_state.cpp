#include "verbs/cm/connection_state.hpp"

namespace weir::cm {
namespace {

struct Row {
  State state;
  Input input;
  Step step;
};

using S = State;
using I = Input;

// clang-format off
constexpr Row rows[] = {
    // Active side.
    {S::idle, I::connect, {S::req_sent, Send::req, Report::nothing, Timer::delivery}},
    {S::req_sent, I::mra, {S::req_received_by_peer, Send::nothing, Report::nothing, Timer::answer}},
    {S::req_sent, I::nobody_listens, {S::closed, Send::nothing, Report::rejected_no_service}},
    {S::req_sent, I::rep, {S::rep_received, Send::nothing, Report::response}},
    {S::req_sent, I::rej, {S::closed, Send::nothing, Report::rejected_by_peer}},
    {S::req_sent, I::timeout, {S::closed, Send::rej_timeout, Report::unreachable_timeout}},
    {S::req_sent, I::peer_gone, {S::closed, Send::nothing, Report::rejected_no_service}},
    {S::req_sent, I::destroy, {S::closed, Send::rej_timeout}},
    {S::req_received_by_peer, I::rep, {S::rep_received, Send::nothing, Report::response}},
    {S::req_received_by_peer, I::rej, {S::closed, Send::nothing, Report::rejected_by_peer}},
    {S::req_received_by_peer, I::timeout, {S::closed, Send::rej_timeout, Report::unreachable_timeout}},
    {S::req_received_by_peer, I::peer_gone, {S::closed, Send::nothing, Report::rejected_consumer}},
    {S::req_received_by_peer, I::destroy, {S::closed, Send::rej_timeout}},
    {S::rep_received, I::establish, {S::established, Send::rtu}},
    {S::rep_received, I::reject, {S::closed, Send::rej_consumer}},
    {S::rep_received, I::disconnect, {S::closed, Send::rej_consumer}},
    {S::rep_received, I::rej, {S::closed, Send::nothing, Report::rejected_by_peer}},
    {S::rep_received, I::peer_gone, {S::closed, Send::nothing, Report::rejected_consumer}},
    {S::rep_received, I::destroy, {S::closed, Send::rej_consumer}},

    // Passive side. Until the application accepts, it knows the identifier only from the request. It hears
    // of no end before that, as the kernel's ucma withholds those events; its accept fails.
    // The requester's own patience is `answer` as well, but it need not report that it has lost it.
    {S::req_received, I::accept, {S::rep_sent, Send::rep, Report::nothing, Timer::ready}},
    {S::req_received, I::timeout, {S::closed, Send::rej_timeout}},
    {S::req_received, I::reject, {S::closed, Send::rej_consumer}},
    {S::req_received, I::rej, {S::closed}},
    {S::req_received, I::peer_gone, {S::closed}},
    {S::req_received, I::destroy, {S::closed, Send::rej_consumer}},
    {S::rep_sent, I::rtu, {S::established, Send::nothing, Report::established}},
    {S::rep_sent, I::force_established, {S::established, Send::nothing, Report::established}},
    // The RTU does not arrive: the kernel repeats the REP and then reports the same (IBTA 12.9.8.5).
    {S::rep_sent, I::timeout, {S::closed, Send::rej_timeout, Report::unreachable_timeout}},
    {S::rep_sent, I::rej, {S::closed, Send::nothing, Report::rejected_by_peer}},
    {S::rep_sent, I::reject, {S::closed, Send::rej_consumer}},
    {S::rep_sent, I::disconnect, {S::closed, Send::rej_consumer}},
    {S::rep_sent, I::peer_gone, {S::closed, Send::nothing, Report::rejected_consumer}},
    {S::rep_sent, I::destroy, {S::closed, Send::rej_consumer}},

    // Both sides, connected. We send the DREP when our application disconnects in turn or destroys the
    // identifier, as the kernel does: it tells the peer that the other program has seen the end.
    {S::established, I::rtu, {S::established}},  // after force_established
    {S::established, I::force_established, {S::established}},
    {S::established, I::disconnect, {S::dreq_sent, Send::dreq, Report::nothing, Timer::disconnect}},
    {S::established, I::dreq, {S::dreq_received, Send::nothing, Report::disconnected}},
    // Our RTU crossed with the REJ of a passive side that gave up (IBTA 12.9.8: a REJ ends ESTABLISHED too).
    {S::established, I::rej, {S::timewait, Send::nothing, Report::disconnected, Timer::timewait}},
    {S::established, I::peer_gone, {S::timewait, Send::nothing, Report::disconnected, Timer::timewait}},
    {S::established, I::destroy, {S::closed, Send::dreq}},
    {S::dreq_sent, I::drep, {S::timewait, Send::nothing, Report::disconnected, Timer::timewait}},
    {S::dreq_sent, I::dreq, {S::timewait, Send::drep, Report::disconnected, Timer::timewait}},  // they crossed
    {S::dreq_sent, I::rej, {S::timewait, Send::nothing, Report::disconnected, Timer::timewait}},
    {S::dreq_sent, I::timeout, {S::timewait, Send::nothing, Report::disconnected, Timer::timewait}},
    {S::dreq_sent, I::peer_gone, {S::timewait, Send::nothing, Report::disconnected, Timer::timewait}},
    {S::dreq_sent, I::destroy, {S::closed}},
    {S::dreq_received, I::disconnect, {S::timewait, Send::drep, Report::nothing, Timer::timewait}},
    {S::dreq_received, I::peer_gone, {S::timewait, Send::nothing, Report::nothing, Timer::timewait}},
    {S::dreq_received, I::destroy, {S::closed, Send::drep}},
    {S::timewait, I::timeout, {S::closed, Send::nothing, Report::timewait_exit}},
    {S::timewait, I::destroy, {S::closed}},

    // Looking up an unconnected service.
    {S::idle, I::lookup, {S::sidr_sent, Send::sidr_req, Report::nothing, Timer::delivery}},
    {S::sidr_sent, I::mra, {S::sidr_received_by_peer, Send::nothing, Report::nothing, Timer::answer}},
    {S::sidr_sent, I::nobody_listens, {S::closed, Send::nothing, Report::unreachable_no_service}},
    {S::sidr_sent, I::sidr_accepted, {S::closed, Send::nothing, Report::lookup_answered}},
    {S::sidr_sent, I::sidr_refused, {S::closed, Send::nothing, Report::unreachable_refused}},
    {S::sidr_sent, I::timeout, {S::closed, Send::nothing, Report::unreachable_timeout}},
    {S::sidr_sent, I::peer_gone, {S::closed, Send::nothing, Report::unreachable_timeout}},
    {S::sidr_sent, I::destroy, {S::closed}},
    {S::sidr_received_by_peer, I::sidr_accepted, {S::closed, Send::nothing, Report::lookup_answered}},
    {S::sidr_received_by_peer, I::sidr_refused, {S::closed, Send::nothing, Report::unreachable_refused}},
    {S::sidr_received_by_peer, I::timeout, {S::closed, Send::nothing, Report::unreachable_timeout}},
    {S::sidr_received_by_peer, I::peer_gone, {S::closed, Send::nothing, Report::unreachable_timeout}},
    {S::sidr_received_by_peer, I::destroy, {S::closed}},
    {S::sidr_received, I::accept, {S::closed, Send::sidr_accept}},
    {S::sidr_received, I::reject, {S::closed, Send::sidr_refuse}},
    {S::sidr_received, I::timeout, {S::closed, Send::sidr_refuse}},
    {S::sidr_received, I::peer_gone, {S::closed}},
    {S::sidr_received, I::destroy, {S::closed, Send::sidr_refuse}},

    {S::idle, I::destroy, {S::closed}},
    {S::closed, I::destroy, {S::closed}},

    // If there is nothing to end (yet, or any more) the kernel only takes the queue pair down, without an
    // error. Servers answer DISCONNECTED with a disconnect of their own, some of them late.
    {S::req_sent, I::disconnect, {S::req_sent, Send::nothing, Report::nothing, Timer::as_before}},
    {S::req_received_by_peer, I::disconnect,
     {S::req_received_by_peer, Send::nothing, Report::nothing, Timer::as_before}},
    {S::req_received, I::disconnect, {S::req_received, Send::nothing, Report::nothing, Timer::as_before}},
    {S::dreq_sent, I::disconnect, {S::dreq_sent, Send::nothing, Report::nothing, Timer::as_before}},
    {S::timewait, I::disconnect, {S::timewait, Send::nothing, Report::nothing, Timer::as_before}},
    {S::closed, I::disconnect, {S::closed, Send::nothing, Report::nothing, Timer::as_before}},
    {S::sidr_sent, I::disconnect, {S::sidr_sent, Send::nothing, Report::nothing, Timer::as_before}},
    {S::sidr_received_by_peer, I::disconnect,
     {S::sidr_received_by_peer, Send::nothing, Report::nothing, Timer::as_before}},
    {S::sidr_received, I::disconnect, {S::sidr_received, Send::nothing, Report::nothing, Timer::as_before}},
};
// clang-format on

}  // namespace

std::optional<Step> step(State state, Input input) {
  for (const auto& row : rows) {
    if (row.state == state && row.input == input) return row.step;
  }
  return std::nullopt;
}

}  // namespace weir::cm
