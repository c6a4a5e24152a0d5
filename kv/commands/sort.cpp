// SORT: sorts the elements of a list, set or sorted set by themselves or by values of other keys.
//
// Text is compared byte by byte, regardless of the locale.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "kv/acl/permission.hpp"
#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/commands/collection.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

struct SortOptions {
  bool descending = false;
  bool by_text = false;
  bool unordered = false;  // the source is a set
  std::int64_t first = 0;
  std::int64_t count = -1;
  std::optional<std::string_view> by;
  std::vector<std::string_view> gets;
  std::optional<std::string_view> store;

  // A pattern without * is the same for all elements, so they keep their order.
  bool as_they_are() const { return by && by->find('*') == std::string_view::npos; }
};

enum class Stores : std::uint8_t { no, yes };

// The data decides which keys the patterns name. Replies with an error if the user might not read one.
bool may_follow_patterns(const Call& call, std::string_view option) {
  if (acl::may_read_every_key(*call.client.user, call.command, call.arguments)) return true;
  call.reply.error("ERR " + std::string(option) +
                   " option of SORT denied due to insufficient ACL permissions.");
  return false;
}

bool parse_options(const Call& call, Stores stores, SortOptions& options) {
  OptionWalk walk(stores == Stores::yes ? sort_options : sort_ro_options, call.arguments);
  while (walk.next()) {
    const std::size_t at = walk.value();
    if (walk.is("ASC")) {
      options.descending = false;
    } else if (walk.is("DESC")) {
      options.descending = true;
    } else if (walk.is("ALPHA")) {
      options.by_text = true;
    } else if (walk.is("LIMIT")) {
      if (!call.integer(at, options.first) || !call.integer(at + 1, options.count)) return false;
    } else if (walk.is("STORE")) {
      options.store = call[at];
    } else if (walk.is("BY")) {
      options.by = call[at];
      if (!options.as_they_are() && !may_follow_patterns(call, "BY")) return false;
    } else {
      options.gets.push_back(call[at]);
      if (!may_follow_patterns(call, "GET")) return false;
    }
  }
  if (walk.wrong()) call.syntax_error();
  return !walk.wrong();
}

// The value that a pattern names for an element: "weight_*" the string at that key, "object_*->field" a field
// of a hash, "#" the element itself. nullopt: it does not exist.
std::optional<std::string> pointed_at(const Call& call, std::string_view pattern, std::string_view element) {
  if (pattern == "#") return std::string(element);
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  const std::size_t arrow = pattern.find("->", star + 1);
  const bool in_hash = arrow != std::string_view::npos && arrow + 2 < pattern.size();
  const std::size_t end = in_hash ? arrow : pattern.size();
  std::string key(pattern.substr(0, star));
  key.append(element).append(pattern.substr(star + 1, end - star - 1));
  const Record* record = call.read(key);
  if (record == nullptr || record->value.type() != (in_hash ? Type::hash : Type::string)) return std::nullopt;
  if (!in_hash) return std::string(record->value.text().view());
  const auto value = record->value.hash().find(pattern.substr(arrow + 2));
  return value ? std::optional<std::string>(value->view()) : std::nullopt;
}

// The part of that many elements that LIMIT selects.
struct Slice {
  std::size_t first;
  std::size_t end;
};

Slice limited(const SortOptions& options, std::size_t of) {
  const auto size = static_cast<std::int64_t>(of);
  const std::int64_t first = std::clamp<std::int64_t>(options.first, 0, size);
  const std::int64_t count = options.count < 0 ? size - first : std::min(options.count, size - first);
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(first + count)};
}

enum class Way : std::uint8_t { forward, backward };

// The elements in stored order, or from the last on; a set has no order to reverse.
std::vector<std::string> elements_in(const Record* record, Way way, Slice range) {
  std::vector<std::string> elements;
  if (record == nullptr || range.first == range.end) return elements;
  elements.reserve(range.end - range.first);
  const bool forward = way == Way::forward;
  switch (record->value.type()) {
    case Type::list: {
      const List& list = record->value.list();
      const auto add = [&](std::string_view element) {
        elements.emplace_back(element);
        return true;
      };
      if (forward) {
        list.for_each(range.first, range.end, Walk::forward, add);
      } else {
        list.for_each(list.size() - range.end, list.size() - range.first, Walk::backward, add);
      }
      break;
    }
    case Type::set: {
      std::size_t place = 0;
      record->value.set().for_each([&](std::string_view member) {
        if (place >= range.first) elements.emplace_back(member);
        return ++place < range.end;
      });
      break;
    }
    case Type::zset: {
      const SortedSet& zset = record->value.zset();
      const Ranks ranks =
          forward ? Ranks{range.first, range.end} : Ranks{zset.size() - range.end, zset.size() - range.first};
      zset.for_each(ranks, forward ? Walk::forward : Walk::backward, [&](std::string_view member, double) {
        elements.emplace_back(member);
        return true;
      });
      break;
    }
    case Type::string:
    case Type::hash:
    case Type::stream:
      break;
  }
  return elements;
}

struct Weighed {
  std::string element;
  double number = 0;
  std::optional<std::string> text;  // the value that BY names for it
};

// An element without a weight sorts as 0 among numbers and first among texts. False: a
// weight is not a number.
bool weigh(const Call& call, const SortOptions& options, Weighed& one) {
  if (options.by) one.text = pointed_at(call, *options.by, one.element);
  if (options.by_text || (options.by && !one.text)) return true;
  const std::string& text = options.by ? *one.text : one.element;
  if (const auto whole = parse_int(text)) {  // much cheaper, and rounded alike
    one.number = static_cast<double>(*whole);
    return true;
  }
  errno = 0;
  char* end = nullptr;
  one.number = std::strtod(text.c_str(), &end);
  return *end == '\0' && errno != ERANGE && !std::isnan(one.number);
}

bool in_order(const SortOptions& options, const Weighed& a, const Weighed& b) {
  if (options.by_text) return options.by ? a.text < b.text : a.element < b.element;
  return a.number < b.number || (a.number == b.number && a.element < b.element);
}

// Keeps the elements that are in the range after sorting. Equal elements keep their order.
bool sort_elements(const Call& call, const SortOptions& options, Slice range,
                   std::vector<std::string>& elements) {
  std::vector<Weighed> weighed;
  weighed.reserve(elements.size());
  for (std::string& element : elements) {
    weighed.push_back({std::move(element), 0, std::nullopt});
    if (weigh(call, options, weighed.back())) continue;
    call.reply.error("ERR One or more scores can't be converted into double");
    return false;
  }
  std::vector<Weighed*> order;
  for (Weighed& one : weighed) order.push_back(&one);
  const auto before = [&](const Weighed* a, const Weighed* b) {
    if (options.descending ? in_order(options, *b, *a) : in_order(options, *a, *b)) return true;
    if (options.descending ? in_order(options, *a, *b) : in_order(options, *b, *a)) return false;
    // A set's elements have no order, and a replica's set may store them in another one.
    return options.unordered ? a->element < b->element : a < b;
  };
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(range.first);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(range.end);
  // A client that asks for a few of many need not wait until all are sorted.
  if (first != order.begin() && first != order.end())
    std::nth_element(order.begin(), first, order.end(), before);
  if (end != order.end()) std::nth_element(first, end, order.end(), before);
  std::sort(first, end, before);
  elements.clear();
  for (auto one = first; one != end; ++one) elements.push_back(std::move((*one)->element));
  return true;
}

// For each element the values that GET names, or the element itself.
std::vector<std::optional<std::string>> results(const Call& call, const SortOptions& options,
                                                std::span<const std::string> elements) {
  std::vector<std::optional<std::string>> found;
  for (const std::string& element : elements) {
    if (options.gets.empty()) found.emplace_back(element);
    for (std::string_view pattern : options.gets) found.push_back(pointed_at(call, pattern, element));
  }
  return found;
}

void store(const Call& call, std::string_view key, const std::vector<std::optional<std::string>>& found) {
  if (call.write(key) != nullptr) {
    call.db.erase(key);
    if (found.empty()) call.changed(key, key_deleted);
  }
  if (!found.empty()) {
    List& list = make_list(call, key);
    for (const auto& one : found)
      list.push(End::right, std::string_view(one ? *one : std::string_view()), node_limit(call));
    call.changed(key);
  }
  call.reply.integer(static_cast<std::int64_t>(found.size()));
}

bool can_be_sorted(Type type) { return type == Type::list || type == Type::set || type == Type::zset; }

void sort_with(const Call& call, Stores stores) {
  SortOptions options;
  if (!parse_options(call, stores, options)) return;
  const Record* record = call.read(call[1]);
  if (record != nullptr && !can_be_sorted(record->value.type())) {
    return call.reply.error("WRONGTYPE Operation against a key holding the wrong kind of value");
  }
  const bool is_set = record != nullptr && record->value.type() == Type::set;
  options.unordered = is_set;
  bool as_they_are = options.as_they_are();
  if (as_they_are && is_set && (options.store || call.client.in_script)) {
    // A set has no order of its own. What is stored, or decides what a script does, needs one.
    as_they_are = false;
    options.by_text = true;
    options.by.reset();
  }
  const std::size_t size = record == nullptr ? 0 : record->value.elements();
  const Slice range = limited(options, size);
  std::vector<std::string> elements;
  if (as_they_are) {
    elements = elements_in(record, options.descending ? Way::backward : Way::forward, range);
  } else {
    elements = elements_in(record, Way::forward, {0, size});
    if (!sort_elements(call, options, range, elements)) return;
  }
  if (options.gets.empty() && !options.store) {
    call.reply.array(elements.size());
    for (const std::string& element : elements) call.reply.bulk(element);
    return;
  }
  auto found = results(call, options, elements);
  if (options.store) return store(call, *options.store, found);
  call.reply.array(found.size());
  for (const auto& one : found) one ? call.reply.bulk(*one) : call.reply.null();
}

void sort(const Call& call) { sort_with(call, Stores::yes); }
void sort_ro(const Call& call) { sort_with(call, Stores::no); }

}  // namespace

std::span<const Command> sort_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"sort", -2, write | denyoom | movablekeys, 1, 1, 1, sort, "generic",
       "Sorts the elements of a list, set or sorted set."},
      {"sort_ro", -2, readonly | movablekeys, 1, 1, 1, sort_ro, "generic",
       "Sorts the elements of a list, set or sorted set, stores nothing."},
  };
  return commands;
}

}  // namespace weir::kv
