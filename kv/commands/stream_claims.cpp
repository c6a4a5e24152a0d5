// Streams: moving pending entries to another consumer, because their consumer has not
// acknowledged them for long.
//
// An entry that has left the stream is discovered here and is then no longer pending.
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <limits>
#include <string>

#include "kv/call/call.hpp"
#include "kv/commands/streams.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

struct Claim {
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  std::string_view consumer_name;
  StreamConsumer* consumer = nullptr;  // set once there is something for it
  std::int64_t least_idle_ms = 0;
  std::int64_t delivered_ms = 0;  // given to the entries; default: now
  std::int64_t retry_count = -1;  // likewise; -1: one more than before
  bool force = false;             // even if the entry is not pending
  bool only_ids = false;
};

bool no_group(const Call& call) {
  call.reply.error("NOGROUP No such key '" + std::string(up_to_zero(call[1])) + "' or consumer group '" +
                   std::string(up_to_zero(call[2])) + "'");
  return false;
}

void reply_claimed(const Call& call, const Claim& claim, const std::vector<StreamId>& claimed) {
  call.reply.array(claimed.size());
  for (const StreamId id : claimed) {
    if (claim.only_ids) {
      reply_stream_id(call.reply, id);
    } else {
      reply_stream_entry_of(call.reply, *claim.stream, id);
    }
  }
}

// Gives the entry, which is in the stream, to the claiming consumer.
void hand_over(const Call& call, Claim& claim, StreamId id) {
  if (claim.consumer == nullptr) {
    claim.consumer = claim.group->find_consumer(claim.consumer_name);
    if (claim.consumer == nullptr) {
      claim.consumer = &claim.group->add_consumer(claim.consumer_name, call.now_ms);
      call.notify(call[1], {'t', "xgroup-createconsumer"});
    }
    claim.consumer->seen_ms = call.now_ms;
  }
  const bool was_pending = claim.group->find(id) != nullptr;
  StreamGroup::Pending& pending = claim.group->give(id, *claim.consumer);
  pending.delivered_ms = claim.delivered_ms;
  if (!was_pending) pending.deliveries = 1;
  if (claim.retry_count >= 0) {
    pending.deliveries = static_cast<std::uint64_t>(claim.retry_count);
  } else if (!claim.only_ids) {
    ++pending.deliveries;
  }
}

bool idle_enough(const Call& call, const Claim& claim, const StreamGroup::Pending& pending) {
  return claim.least_idle_ms == 0 || call.now_ms - pending.delivered_ms >= claim.least_idle_ms;
}

// Parses XCLAIM's options from argument `at` on.
bool parse_claim_options(const Call& call, std::size_t at, Claim& claim, StreamId& last_id) {
  std::int64_t delivered_ms = -1;
  for (; at < call.count(); ++at) {
    const bool has_value = at + 1 < call.count();
    if (is_word(call[at], "FORCE")) {
      claim.force = true;
    } else if (is_word(call[at], "JUSTID")) {
      claim.only_ids = true;
    } else if (is_word(call[at], "IDLE") && has_value) {
      std::int64_t idle_ms = 0;
      if (!call.integer(++at, idle_ms, "ERR Invalid IDLE option argument for XCLAIM")) return false;
      if (__builtin_sub_overflow(call.now_ms, idle_ms, &delivered_ms)) {
        delivered_ms = std::numeric_limits<std::int64_t>::max();
      }
    } else if (is_word(call[at], "TIME") && has_value) {
      if (!call.integer(++at, delivered_ms, "ERR Invalid TIME option argument for XCLAIM")) return false;
    } else if (is_word(call[at], "RETRYCOUNT") && has_value) {
      if (!call.integer(++at, claim.retry_count, "ERR Invalid RETRYCOUNT option argument for XCLAIM")) {
        return false;
      }
    } else if (is_word(call[at], "LASTID") && has_value) {
      if (!stream_id(call, call[++at], last_id)) return false;
    } else {
      call.reply.error("ERR Unrecognized XCLAIM option '" + std::string(up_to_zero(call[at])) + "'");
      return false;
    }
  }
  // A time from a clock that differs from ours must not make this fail.
  const bool sensible = delivered_ms >= 0 && delivered_ms <= call.now_ms;
  claim.delivered_ms = sensible ? delivered_ms : call.now_ms;
  return true;
}

void xclaim(const Call& call) {
  Claim claim;
  if (!stream_group_of(call, call[1], call[2], claim.stream, claim.group)) return;
  if (claim.group == nullptr) return static_cast<void>(no_group(call));
  claim.consumer_name = call[3];
  if (!call.integer(4, claim.least_idle_ms, "ERR Invalid min-idle-time argument for XCLAIM")) return;
  claim.least_idle_ms = std::max<std::int64_t>(claim.least_idle_ms, 0);
  absl::InlinedVector<StreamId, 8> ids;
  std::size_t at = 5;
  for (; at < call.count(); ++at) {
    const auto id = parse_stream_id(call[at]);
    if (!id) break;
    ids.push_back(*id);
  }
  StreamId last_id;
  if (!parse_claim_options(call, at, claim, last_id)) return;
  const GroupName name{call[1], call[2]};
  if (last_id > claim.group->last_id) {
    claim.group->last_id = last_id;
    replay_progress(call, name, *claim.group);
  }
  std::vector<StreamId> claimed;
  for (const StreamId id : ids) {
    const StreamGroup::Pending* pending = claim.group->find(id);
    if (!claim.stream->contains(id)) {
      if (claim.group->take_back(id)) replay_taken_back(call, name, id);
      continue;
    }
    if (pending == nullptr ? !claim.force : !idle_enough(call, claim, *pending)) continue;
    hand_over(call, claim, id);
    claimed.push_back(id);
    replay_pending(call, name, *claim.group, id);
  }
  reply_claimed(call, claim, claimed);
}

struct AutoClaim {
  StreamId start;
  std::int64_t count = 100;
};

// How many pending entries are examined per claimed entry.
constexpr std::int64_t looks_per_entry = 10;

bool parse_auto_claim(const Call& call, Claim& claim, AutoClaim& query) {
  if (!call.integer(4, claim.least_idle_ms, "ERR Invalid min-idle-time argument for XAUTOCLAIM"))
    return false;
  claim.least_idle_ms = std::max<std::int64_t>(claim.least_idle_ms, 0);
  if (!stream_interval_start(call, call[5], query.start)) return false;
  for (std::size_t i = 6; i < call.count(); ++i) {
    if (is_word(call[i], "COUNT") && i + 1 < call.count()) {
      constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 16;
      constexpr std::string_view wrong = "ERR COUNT must be > 0";
      if (!call.integer(++i, query.count, wrong)) return false;
      if (query.count < 1 || query.count > most) return call.reply.error(wrong), false;
    } else if (is_word(call[i], "JUSTID")) {
      claim.only_ids = true;
    } else {
      return call.syntax_error(), false;
    }
  }
  return true;
}

void xautoclaim(const Call& call) {
  Claim claim;
  AutoClaim query;
  if (!parse_auto_claim(call, claim, query)) return;
  if (!stream_group_of(call, call[1], call[2], claim.stream, claim.group)) return;
  if (claim.group == nullptr) return static_cast<void>(no_group(call));
  claim.consumer_name = call[3];
  claim.delivered_ms = call.now_ms;
  const GroupName name{call[1], call[2]};
  std::vector<StreamId> claimed;
  std::vector<StreamId> gone;
  std::int64_t looks = query.count * looks_per_entry;
  std::int64_t left = query.count;
  const StreamGroup::PendingEntries& pending = claim.group->pending();
  auto at = pending.lower_bound(query.start);
  for (; looks > 0 && left > 0 && at != pending.end(); --looks) {
    const StreamId id = at->first;
    if (!claim.stream->contains(id)) {
      claim.group->take_back(id);
      replay_taken_back(call, name, id);
      gone.push_back(id);
      --left;
      at = pending.upper_bound(id);
      continue;
    }
    if (idle_enough(call, claim, at->second)) {
      hand_over(call, claim, id);
      replay_pending(call, name, *claim.group, id);
      claimed.push_back(id);
      --left;
    }
    ++at;
  }
  call.reply.array(3);
  reply_stream_id(call.reply, at == pending.end() ? StreamId{} : at->first);
  reply_claimed(call, claim, claimed);
  call.reply.array(gone.size());
  for (const StreamId id : gone) reply_stream_id(call.reply, id);
}

}  // namespace

std::span<const Command> stream_claim_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"xclaim", -6, write | fast, 1, 1, 1, xclaim, "stream", "Gives pending entries to another consumer."},
      {"xautoclaim", -6, write | fast, 1, 1, 1, xautoclaim, "stream",
       "Gives entries that have long been pending to another consumer."},
  };
  return commands;
}

}  // namespace weir::kv
