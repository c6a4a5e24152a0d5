// Dialogues that follow the state table, and properties that hold for the whole table.
#include "verbs/cm/connection_state.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace weir::cm {
namespace {

constexpr auto first_state = State::idle;
constexpr auto last_state = State::closed;
constexpr auto last_input = Input::timeout;

// One turn: an input, and what must follow.
struct Turn {
  Input input;
  Step expected;
};
struct Dialogue {
  const char* name;
  State from;
  std::vector<Turn> turns;
};

class Dialogues : public testing::TestWithParam<Dialogue> {};

TEST_P(Dialogues, goes_as_written) {
  State state = GetParam().from;
  int number = 0;
  for (const auto& turn : GetParam().turns) {
    SCOPED_TRACE("turn " + std::to_string(++number));
    const auto next = step(state, turn.input);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->next, turn.expected.next);
    EXPECT_EQ(next->send, turn.expected.send);
    EXPECT_EQ(next->report, turn.expected.report);
    EXPECT_EQ(next->timer, turn.expected.timer);
    state = next->next;
  }
}

using S = State;
using I = Input;
const Turn request = {I::connect, {S::req_sent, Send::req, Report::nothing, Timer::delivery}};
const Turn delivered = {I::mra, {S::req_received_by_peer, Send::nothing, Report::nothing, Timer::answer}};
const Turn answered = {I::rep, {S::rep_received, Send::nothing, Report::response}};
const Turn established = {I::establish, {S::established, Send::rtu}};
const Turn accepted = {I::accept, {S::rep_sent, Send::rep, Report::nothing, Timer::ready}};
const Turn ready = {I::rtu, {S::established, Send::nothing, Report::established}};
const Turn hangs_up = {I::disconnect, {S::dreq_sent, Send::dreq, Report::nothing, Timer::disconnect}};
const Turn waited = {I::timeout, {S::closed, Send::nothing, Report::timewait_exit}};
const Turn hung_up_on = {I::dreq, {S::dreq_received, Send::nothing, Report::disconnected}};
const Turn confirms = {I::disconnect, {S::timewait, Send::drep, Report::nothing, Timer::timewait}};
Turn disconnected(Input by, Send send) {
  return {by, {S::timewait, send, Report::disconnected, Timer::timewait}};
}
Turn ends(Input by, Report report, Send send = Send::nothing) { return {by, {S::closed, send, report}}; }

INSTANTIATE_TEST_SUITE_P(
    Connection, Dialogues,
    testing::Values(
        Dialogue{"active_connects_and_hangs_up",
                 S::idle,
                 {request, delivered, answered, established, hangs_up, disconnected(I::drep, Send::nothing),
                  waited}},
        Dialogue{"passive_accepts_and_is_hung_up_on",
                 S::req_received,
                 {accepted, ready, hung_up_on, confirms, waited}},
        Dialogue{"both_hang_up_at_once", S::established, {hangs_up, disconnected(I::dreq, Send::drep)}},
        Dialogue{"an_answer_may_come_before_the_receipt", S::idle, {request, answered, established}},
        Dialogue{"nobody_listens", S::idle, {request, ends(I::nobody_listens, Report::rejected_no_service)}},
        Dialogue{
            "the_listener_rejects", S::idle, {request, delivered, ends(I::rej, Report::rejected_by_peer)}},
        Dialogue{"a_process_that_never_takes_the_request",
                 S::idle,
                 {request, ends(I::timeout, Report::unreachable_timeout, Send::rej_timeout)}},
        Dialogue{"an_application_that_never_answers",
                 S::idle,
                 {request, delivered, ends(I::timeout, Report::unreachable_timeout, Send::rej_timeout)}},
        Dialogue{"the_listener_dies_before_it_answers",
                 S::idle,
                 {request, delivered, ends(I::peer_gone, Report::rejected_consumer)}},
        Dialogue{"the_requester_dies_before_it_is_answered_and_nobody_hears_of_it",
                 S::req_received,
                 {ends(I::peer_gone, Report::nothing)}},
        Dialogue{"the_requester_gives_up_and_nobody_hears_of_it",
                 S::req_received,
                 {ends(I::rej, Report::nothing)}},
        Dialogue{"the_requester_dies_when_accepted",
                 S::req_received,
                 {accepted, ends(I::peer_gone, Report::rejected_consumer)}},
        Dialogue{"the_requester_is_never_ready",
                 S::req_received,
                 {accepted, ends(I::timeout, Report::unreachable_timeout, Send::rej_timeout)}},
        Dialogue{"our_application_never_answers",
                 S::req_received,
                 {ends(I::timeout, Report::nothing, Send::rej_timeout)}},
        Dialogue{"given_up_by_the_passive_side_as_we_established_it",
                 S::established,
                 {disconnected(I::rej, Send::nothing), waited}},
        Dialogue{"given_up_by_the_passive_side_as_we_hung_up",
                 S::established,
                 {hangs_up, disconnected(I::rej, Send::nothing)}},
        Dialogue{"the_peer_dies", S::established, {disconnected(I::peer_gone, Send::nothing), waited}},
        Dialogue{"the_peer_dies_instead_of_confirming_the_end",
                 S::established,
                 {hangs_up, disconnected(I::peer_gone, Send::nothing)}},
        Dialogue{
            "nobody_confirms_the_end", S::established, {hangs_up, disconnected(I::timeout, Send::nothing)}},
        Dialogue{"hanging_up_twice_on_one_who_has_hung_up",
                 S::established,
                 {hung_up_on,
                  confirms,
                  {I::disconnect, {S::timewait, Send::nothing, Report::nothing, Timer::as_before}},
                  waited}},
        Dialogue{"destroyed_after_being_hung_up_on",
                 S::established,
                 {hung_up_on, ends(I::destroy, Report::nothing, Send::drep)}},
        Dialogue{"the_peer_dies_before_its_end_is_confirmed",
                 S::established,
                 {hung_up_on,
                  {I::peer_gone, {S::timewait, Send::nothing, Report::nothing, Timer::timewait}},
                  waited}},
        Dialogue{"told_of_traffic_before_the_rtu",
                 S::rep_sent,
                 {{I::force_established, {S::established, Send::nothing, Report::established}},
                  {I::rtu, {S::established}}}},
        Dialogue{"destroyed_while_it_asks",
                 S::idle,
                 {request, ends(I::destroy, Report::nothing, Send::rej_timeout)}},
        Dialogue{"destroyed_while_it_is_asked",
                 S::req_received,
                 {ends(I::destroy, Report::nothing, Send::rej_consumer)}},
        Dialogue{
            "destroyed_while_connected", S::established, {ends(I::destroy, Report::nothing, Send::dreq)}},
        Dialogue{"a_lookup_succeeds",
                 S::idle,
                 {{I::lookup, {S::sidr_sent, Send::sidr_req, Report::nothing, Timer::delivery}},
                  {I::mra, {S::sidr_received_by_peer, Send::nothing, Report::nothing, Timer::answer}},
                  ends(I::sidr_accepted, Report::lookup_answered)}},
        Dialogue{"a_lookup_is_refused",
                 S::idle,
                 {{I::lookup, {S::sidr_sent, Send::sidr_req, Report::nothing, Timer::delivery}},
                  ends(I::sidr_refused, Report::unreachable_refused)}},
        Dialogue{
            "a_lookup_is_answered", S::sidr_received, {ends(I::accept, Report::nothing, Send::sidr_accept)}}),
    [](const auto& one) { return one.param.name; });

template <class Check>
void for_each_step(Check check) {
  for (int state = static_cast<int>(first_state); state <= static_cast<int>(last_state); ++state) {
    for (int input = 0; input <= static_cast<int>(last_input); ++input) {
      SCOPED_TRACE("state " + std::to_string(state) + " input " + std::to_string(input));
      check(static_cast<State>(state), static_cast<Input>(input),
            step(static_cast<State>(state), static_cast<Input>(input)));
    }
  }
}

TEST(Connection, destroying_closes_every_state_and_tells_nobody) {
  for_each_step([](State, Input input, const std::optional<Step>& next) {
    if (input != Input::destroy) return;
    ASSERT_TRUE(next);
    EXPECT_EQ(next->next, State::closed);
    EXPECT_EQ(next->report, Report::nothing);
    EXPECT_EQ(next->timer, Timer::none);
  });
}

TEST(Connection, nothing_wakes_what_is_closed) {
  for_each_step([](State state, Input, const std::optional<Step>& next) {
    if (state != State::closed || !next) return;
    EXPECT_EQ(next->next, State::closed);
    EXPECT_EQ(next->send, Send::nothing);
    EXPECT_EQ(next->report, Report::nothing);
  });
}

TEST(Connection, disconnecting_is_an_error_only_where_no_connection_was_ever_asked_for) {
  for_each_step([](State state, Input input, const std::optional<Step>& next) {
    if (input != Input::disconnect) return;
    EXPECT_EQ(next.has_value(), state != State::idle);
  });
}

TEST(Connection, whoever_waits_for_a_peer_learns_of_its_death) {
  for (const State state :
       {State::req_sent, State::req_received_by_peer, State::rep_received, State::rep_sent,
        State::established, State::dreq_sent, State::sidr_sent, State::sidr_received_by_peer}) {
    const auto next = step(state, Input::peer_gone);
    ASSERT_TRUE(next) << static_cast<int>(state);
    EXPECT_NE(next->report, Report::nothing) << static_cast<int>(state);
  }
}

TEST(Connection, a_timer_that_runs_has_a_row_for_when_it_ends) {
  for_each_step([](State, Input, const std::optional<Step>& next) {
    if (next && next->timer != Timer::none && next->timer != Timer::as_before) {
      EXPECT_TRUE(step(next->next, Input::timeout));
    }
  });
}

}  // namespace
}  // namespace weir::cm
