// Lists. The blocking commands are in lists_blocking.cpp.
#include "kv/commands/lists.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "kv/call/call.hpp"
#include "kv/commands/collection.hpp"

namespace weir::kv {

bool parse_end(std::string_view word, End& end) {
  if (is_word(word, "LEFT")) return end = End::left, true;
  if (is_word(word, "RIGHT")) return end = End::right, true;
  return false;
}

void reply_and_take(const Call& call, List& list, End end) {
  reply_text(call, list.at(end));
  list.pop(end, node_limit(call));
}

KeyEvent pushed_at(End end) { return {'l', end == End::left ? "lpush" : "rpush"}; }
KeyEvent popped_at(End end) { return {'l', end == End::left ? "lpop" : "rpop"}; }

namespace {

enum class Missing : std::uint8_t { create, leave };

void push(const Call& call, End end, Missing missing) {
  List* list = nullptr;
  if (!write_as(call, call[1], list)) return;
  if (list == nullptr && missing == Missing::leave) return call.reply.integer(0);
  if (list == nullptr) list = &make_list(call, call[1]);
  const NodeLimit limit = node_limit(call);
  for (std::size_t i = 2; i < call.count(); ++i) list->push(end, given(call.arguments[i]), limit);
  call.reply.integer(static_cast<std::int64_t>(list->size()));
  call.changed(call[1]);
}
void lpush(const Call& call) { push(call, End::left, Missing::create); }
void rpush(const Call& call) { push(call, End::right, Missing::create); }
void lpushx(const Call& call) { push(call, End::left, Missing::leave); }
void rpushx(const Call& call) { push(call, End::right, Missing::leave); }

void pop(const Call& call, End end) {
  if (call.count() > 3) {
    return call.reply.error("ERR wrong number of arguments for '" + call.command.full_name() + "' command");
  }
  const bool counted = call.count() == 3;
  std::int64_t count = 1;
  if (counted && !positive(call, 2, count)) return;
  List* list = nullptr;
  if (!write_as(call, call[1], list)) return;
  if (list == nullptr) return counted ? call.reply.null_array() : call.reply.null();
  if (!counted) {
    reply_and_take(call, *list, end);
  } else {
    if (count == 0) return call.reply.array(0);
    const std::size_t n = std::min(static_cast<std::size_t>(count), list->size());
    call.reply.array(n);
    for (std::size_t i = 0; i < n; ++i) reply_and_take(call, *list, end);
  }
  settle(call, call[1], *list);
}
void lpop(const Call& call) { pop(call, End::left); }
void rpop(const Call& call) { pop(call, End::right); }

void llen(const Call& call) {
  List* list = nullptr;
  if (!read_as(call, call[1], list)) return;
  call.reply.integer(list == nullptr ? 0 : static_cast<std::int64_t>(list->size()));
}

// The place that a possibly negative index names.
std::optional<std::size_t> place_at(const List& list, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(list.size());
  if (index < 0) index += size;
  return index < 0 || index >= size ? std::nullopt : std::optional(static_cast<std::size_t>(index));
}

void lindex(const Call& call) {
  List* list = nullptr;
  if (!read_as(call, call[1], list)) return;
  if (list == nullptr) return call.reply.null();
  std::int64_t index = 0;
  if (!call.integer(2, index)) return;
  const auto place = place_at(*list, index);
  place ? reply_text(call, list->at(*place)) : call.reply.null();
}

void lset(const Call& call) {
  const Record* record = call.write(call[1]);
  if (record == nullptr) return call.reply.error("ERR no such key");
  List* list = nullptr;
  std::int64_t index = 0;
  if (!write_as(call, call[1], list) || !call.integer(2, index)) return;
  const auto place = place_at(*list, index);
  if (!place) return call.reply.error("ERR index out of range");
  list->set(*place, given(call.arguments[3]), node_limit(call));
  call.changed(call[1]);
  call.reply.ok();
}

void lrange(const Call& call) {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  if (!call.integer(2, start) || !call.integer(3, stop)) return;
  List* list = nullptr;
  if (!read_as(call, call[1], list)) return;
  if (list == nullptr || !clamp_range(start, stop, list->size())) return call.reply.array(0);
  call.reply.array(static_cast<std::size_t>(stop - start + 1));
  list->for_each(static_cast<std::size_t>(start), static_cast<std::size_t>(stop) + 1, Walk::forward,
                 [&](const StoredText& element) {
                   reply_text(call, element);
                   return true;
                 });
}

// Leaves [start, stop]. Where more goes than stays, what stays is copied and the others are freed by and by.
void keep_only(const Call& call, List& list, std::int64_t start, std::int64_t stop) {
  const auto first = static_cast<std::size_t>(start);
  const auto end = static_cast<std::size_t>(stop) + 1;
  const NodeLimit limit = node_limit(call);
  if (end - first >= list.size() / 2) {
    list.erase(end, list.size(), limit);
    list.erase(0, first, limit);
    return;
  }
  List staying;
  list.for_each(first, end, Walk::forward, [&](const StoredText& element) {
    staying.push(End::right, element, limit);
    return true;
  });
  Value going(std::exchange(list, std::move(staying)));
  call.server.lazy_free.take_if_large(going);
}

void ltrim(const Call& call) {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  if (!call.integer(2, start) || !call.integer(3, stop)) return;
  List* list = nullptr;
  if (!write_as(call, call[1], list)) return;
  if (list == nullptr) return call.reply.ok();
  if (clamp_range(start, stop, list->size())) {
    keep_only(call, *list, start, stop);
    call.changed(call[1]);
  } else {
    call.erase(call[1]);
  }
  call.reply.ok();
}

void lrem(const Call& call) {
  std::int64_t count = 0;
  if (!call.integer(2, count)) return;
  List* list = nullptr;
  if (!write_as(call, call[1], list)) return;
  if (list == nullptr) return call.reply.integer(0);
  const std::uint64_t most = count == 0  ? std::numeric_limits<std::uint64_t>::max()
                             : count > 0 ? static_cast<std::uint64_t>(count)
                                         : std::uint64_t{0} - static_cast<std::uint64_t>(count);
  const Walk walk = count >= 0 ? Walk::forward : Walk::backward;
  const std::size_t removed = list->remove(call[3], most, walk, node_limit(call));
  if (removed != 0) settle(call, call[1], *list);
  call.reply.integer(static_cast<std::int64_t>(removed));
}

void linsert(const Call& call) {
  const bool before = is_word(call[2], "BEFORE");
  if (!before && !is_word(call[2], "AFTER")) return call.syntax_error();
  List* list = nullptr;
  if (!write_as(call, call[1], list)) return;
  if (list == nullptr) return call.reply.integer(0);
  std::size_t place = 0;
  list->for_each([&](std::string_view element) { return element != call[3] && ++place != 0; });
  if (place == list->size()) return call.reply.integer(-1);
  list->insert(before ? place : place + 1, given(call.arguments[4]), node_limit(call));
  call.changed(call[1]);
  call.reply.integer(static_cast<std::int64_t>(list->size()));
}

struct PositionQuery {
  std::int64_t rank = 1;
  std::int64_t count = -1;  // -1: not given, one position is the answer
  std::int64_t most_looks = 0;
};

bool parse_position_query(const Call& call, PositionQuery& query) {
  for (std::size_t i = 3; i < call.count(); i += 2) {
    const bool has_value = i + 1 < call.count();
    if (is_word(call[i], "RANK") && has_value) {
      if (!call.integer(i + 1, query.rank)) return false;
      if (query.rank == 0) {
        call.reply.error(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use "
            "negative to "
            "start from the end of the list");
        return false;
      }
      if (query.rank == std::numeric_limits<std::int64_t>::min()) {
        call.reply.error(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
        return false;
      }
    } else if (is_word(call[i], "COUNT") && has_value) {
      if (!positive(call, i + 1, query.count, "ERR COUNT can't be negative")) return false;
    } else if (is_word(call[i], "MAXLEN") && has_value) {
      if (!positive(call, i + 1, query.most_looks, "ERR MAXLEN can't be negative")) return false;
    } else {
      call.syntax_error();
      return false;
    }
  }
  return true;
}

void lpos(const Call& call) {
  PositionQuery query;
  if (!parse_position_query(call, query)) return;
  List* list = nullptr;
  if (!read_as(call, call[1], list)) return;
  std::vector<std::int64_t> found;
  const auto size = list == nullptr ? 0 : static_cast<std::int64_t>(list->size());
  const std::int64_t looks = query.most_looks == 0 ? size : std::min(query.most_looks, size);
  const bool backward = query.rank < 0;
  std::int64_t to_skip = (backward ? -query.rank : query.rank) - 1;
  std::int64_t looked = 0;
  const auto look_at = [&](std::string_view element) {
    const std::int64_t at = backward ? size - 1 - looked : looked;
    ++looked;
    if (element != call[2] || to_skip-- > 0) return true;
    found.push_back(at);
    return query.count != -1 && static_cast<std::int64_t>(found.size()) != query.count;
  };
  if (looks != 0) {
    const std::int64_t first = backward ? size - looks : 0;
    list->for_each(static_cast<std::size_t>(first), static_cast<std::size_t>(first + looks),
                   backward ? Walk::backward : Walk::forward, look_at);
  }
  if (query.count == -1) return found.empty() ? call.reply.null() : call.reply.integer(found[0]);
  call.reply.array(found.size());
  for (const std::int64_t at : found) call.reply.integer(at);
}

void lmove(const Call& call) {
  End from{};
  End to{};
  if (!parse_end(call[3], from) || !parse_end(call[4], to)) return call.syntax_error();
  static_cast<void>(move_element(call, from, to));
}
void rpoplpush(const Call& call) { move_element(call, End::right, End::left); }

void lmpop(const Call& call) {
  MultiPop<End> pop;
  if (parse_multi_pop(call, 1, parse_end, pop) && !pop_from_first(call, pop)) call.reply.null_array();
}

}  // namespace

bool move_element(const Call& call, End from, End to) {
  List* source = nullptr;
  if (!write_as(call, call[1], source)) return false;
  if (source == nullptr) {
    call.reply.null();
    return false;
  }
  List* target = nullptr;
  if (!write_as(call, call[2], target)) return false;
  if (target == nullptr) target = &make_list(call, call[2]);
  const Bytes element = source->at(from).kept();
  source->pop(from, node_limit(call));
  call.reply.bulk(element);
  target->push(to, element, node_limit(call));
  call.changed(call[2], pushed_at(to));
  source != target ? settle(call, call[1], *source, popped_at(from)) : call.notify(call[1], popped_at(from));
  return true;
}

bool pop_from_first(const Call& call, const MultiPop<End>& pop) {
  const std::string_view replayed = pop.end == End::left ? "LPOP" : "RPOP";
  return multi_pop<List>(call, pop, popped_at(pop.end), replayed,
                         [&](List& list, End end) { reply_and_take(call, list, end); });
}

std::span<const Command> list_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"lpush", -3, write | denyoom | fast, 1, 1, 1, lpush, "list", "Puts elements in front of a list."},
      {"rpush", -3, write | denyoom | fast, 1, 1, 1, rpush, "list", "Puts elements at the end of a list."},
      {"lpushx", -3, write | denyoom | fast, 1, 1, 1, lpushx, "list",
       "Puts elements in front of a list that exists."},
      {"rpushx", -3, write | denyoom | fast, 1, 1, 1, rpushx, "list",
       "Puts elements at the end of a list that exists."},
      {"lpop", -2, write | fast, 1, 1, 1, lpop, "list", "Takes elements from the front of a list."},
      {"rpop", -2, write | fast, 1, 1, 1, rpop, "list", "Takes elements from the end of a list."},
      {"llen", 2, readonly | fast, 1, 1, 1, llen, "list", "Returns the length of a list."},
      {"lindex", 3, readonly, 1, 1, 1, lindex, "list", "Returns an element by its index."},
      {"lset", 4, write | denyoom, 1, 1, 1, lset, "list", "Replaces an element by its index."},
      {"lrange", 4, readonly, 1, 1, 1, lrange, "list", "Returns a range of a list."},
      {"ltrim", 4, write, 1, 1, 1, ltrim, "list", "Keeps a range of a list."},
      {"lrem", 4, write, 1, 1, 1, lrem, "list", "Removes equal elements."},
      {"linsert", 5, write | denyoom, 1, 1, 1, linsert, "list", "Puts an element beside another."},
      {"lpos", -3, readonly, 1, 1, 1, lpos, "list", "Returns where an element is."},
      {"lmove", 5, write | denyoom, 1, 2, 1, lmove, "list", "Moves an element to another list."},
      {"rpoplpush", 3, write | denyoom, 1, 2, 1, rpoplpush, "list",
       "Moves the last element to the front of a list."},
      {"lmpop", -4, write | movablekeys, 0, 0, 0, lmpop, "list",
       "Takes elements from the first list that has some."},
  };
  return commands;
}

}  // namespace weir::kv
