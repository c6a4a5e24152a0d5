// The rules of `weir run --check`, as data: a name that suppressions and CI rely on, how bad it is, the
// clause or man page that says so, and how to repair it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::check {

enum class Severity : std::uint8_t {
  note,  // worth knowing
  risk,  // works here, or by luck
  error  // wrong by specification; sets the exit status
};

enum class Rule : std::uint8_t {
  remote_access,
  remote_request,
  remote_operation,
  local_protection,
  receive_protection,
  local_length,
  receive_too_short,
  read_depth_zero,
  receiver_not_ready,
  no_answer,
  failed_completion,
  post_in_wrong_state,
  send_queue_stuck,
  send_queue_full,
  receive_queue_full,
  sge_limit,
  inline_limit,
  wrong_opcode,
  no_address_handle,
  modify_refused,
  missing_fence,
  source_changed,
  cq_overrun,
  in_use,
  destroyed_twice,
  region_in_use,
  freed_in_flight,
  freed_while_registered,
  event_not_acknowledged,
  acknowledged_too_many,
  slept_on_completion,
  leak_at_exit,
};

struct RuleText {
  Rule rule;
  std::string_view name;
  Severity severity;
  std::string_view why;     // the sentence of the specification
  std::string_view repair;  // what to change
};

// One row for each Rule, in that order.
std::span<const RuleText> rules();
inline const RuleText& text_of(Rule rule) { return rules()[static_cast<std::size_t>(rule)]; }
std::string_view name_of(Severity);

}  // namespace weir::check
