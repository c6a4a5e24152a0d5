// Lists: the commands that wait for an element.
#include "kv/call/call.hpp"
#include "kv/commands/lists.hpp"

namespace weir::kv {

namespace {

void pop_or_wait(const Call& call, End end) {
  std::int64_t timeout_ms = 0;
  if (!timeout(call, call.count() - 1, timeout_ms)) return;
  const Arguments keys = call.arguments.subspan(1, call.count() - 2);
  for (const Argument& key : keys) {
    List* list = nullptr;
    if (!blocked_read(call, key.text, list)) return;
    if (list == nullptr) continue;
    call.reply.array(2);
    call.reply.bulk(key.text);
    reply_and_take(call, *list, end);
    call.replay_as({end == End::left ? "LPOP" : "RPOP", key});
    return settle(call, key.text, *list);
  }
  call.server.wait_for(call, key_names(keys), timeout_ms, NullForm::array);
}
void blpop(const Call& call) { pop_or_wait(call, End::left); }
void brpop(const Call& call) { pop_or_wait(call, End::right); }

// Returns whether an element has moved.
bool move_or_wait(const Call& call, End from, End to, std::size_t timeout_at) {
  std::int64_t timeout_ms = 0;
  if (!timeout(call, timeout_at, timeout_ms)) return false;
  List* source = nullptr;
  if (!blocked_read(call, call[1], source)) return false;
  if (source != nullptr) return move_element(call, from, to);
  call.server.wait_for(call, key_names(call.arguments.subspan(1, 1)), timeout_ms, NullForm::single);
  return false;
}
void blmove(const Call& call) {
  End from{};
  End to{};
  if (!parse_end(call[3], from) || !parse_end(call[4], to)) return call.syntax_error();
  if (move_or_wait(call, from, to, 5)) call.replay_as({"LMOVE", call[1], call[2], call[3], call[4]});
}
void brpoplpush(const Call& call) {
  if (move_or_wait(call, End::right, End::left, 3)) call.replay_as({"RPOPLPUSH", call[1], call[2]});
}

void blmpop(const Call& call) {
  std::int64_t timeout_ms = 0;
  MultiPop<End> pop;
  if (!parse_multi_pop(call, 2, parse_end, pop) || !timeout(call, 1, timeout_ms) || pop_from_first(call, pop))
    return;
  call.server.wait_for(call, key_names(pop.keys), timeout_ms, NullForm::array);
}

}  // namespace

std::span<const Command> list_blocking_commands() {
  using namespace flag;
  constexpr std::uint32_t common = write | noscript | blocking;
  static constexpr Command commands[] = {
      {"blpop", -3, common, 1, -2, 1, blpop, "list", "Takes the first element of a list, waits for one."},
      {"brpop", -3, common, 1, -2, 1, brpop, "list", "Takes the last element of a list, waits for one."},
      {"blmove", 6, common | denyoom, 1, 2, 1, blmove, "list",
       "Moves an element to another list, waits for one."},
      {"brpoplpush", 4, common | denyoom, 1, 2, 1, brpoplpush, "list",
       "Moves the last element to the front of a list, waits for one."},
      {"blmpop", -5, write | blocking | movablekeys, 0, 0, 0, blmpop, "list",
       "Takes elements from the first list that has some, waits for one."},
  };
  return commands;
}

}  // namespace weir::kv
