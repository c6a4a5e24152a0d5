// SORT: the elements of a list, set or sorted set in another order, or other keys' values that they name.
//
// Text is compared byte by byte, whatever the locale.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "kv/commands/collection.hpp"
#include "kv/commands/command.hpp"

namespace weir::kv {

namespace {

struct SortOptions {
  bool descending = false;
  bool by_text = false;
  std::int64_t first = 0;
  std::int64_t count = -1;
  std::optional<std::string_view> by;
  std::vector<std::string_view> gets;
  std::optional<std::string_view> store;

  // A pattern without * is the same for all elements: they stay as they are.
  bool as_they_are() const { return by && by->find('*') == std::string_view::npos; }
};

enum class Stores : std::uint8_t { no, yes };

bool parse_options(const Call& call, Stores stores, SortOptions& options) {
  for (std::size_t i = 2; i < call.count(); ++i) {
    const std::size_t more = call.count() - 1 - i;
    if (is_word(call[i], "ASC")) {
      options.descending = false;
    } else if (is_word(call[i], "DESC")) {
      options.descending = true;
    } else if (is_word(call[i], "ALPHA")) {
      options.by_text = true;
    } else if (is_word(call[i], "LIMIT") && more >= 2) {
      if (!call.integer(i + 1, options.first) || !call.integer(i + 2, options.count)) return false;
      i += 2;
    } else if (stores == Stores::yes && is_word(call[i], "STORE") && more >= 1) {
      options.store = call[++i];
    } else if (is_word(call[i], "BY") && more >= 1) {
      options.by = call[++i];
    } else if (is_word(call[i], "GET") && more >= 1) {
      options.gets.push_back(call[++i]);
    } else {
      call.syntax_error();
      return false;
    }
  }
  return true;
}

// What a pattern names for an element: "weight_*" the string at that key, "object_*->field" a hash's field,
// "#" the element itself. Null: there is no such thing.
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
  const Bytes* value = record->value.hash().find(pattern.substr(arrow + 2));
  return value == nullptr ? std::nullopt : std::optional<std::string>(value->view());
}

std::vector<std::string> elements_of(const Record* record) {
  std::vector<std::string> elements;
  if (record == nullptr) return elements;
  switch (record->value.type()) {
    case Type::list:
      for (const Bytes& element : record->value.list().elements) elements.emplace_back(element.view());
      break;
    case Type::set:
      record->value.set().for_each([&](std::string_view member) {
        elements.emplace_back(member);
        return true;
      });
      break;
    case Type::zset:
      for (const ScoredNode* n = record->value.zset().order().first(); n != nullptr; n = n->next())
        elements.emplace_back(n->member());
      break;
    case Type::string:
    case Type::hash:
      break;
  }
  return elements;
}

struct Weighed {
  std::string element;
  double number = 0;
  std::optional<std::string> text;
};

// What an element without a weight sorts as is 0 among numbers and the first among texts. False: a weight is
// no number.
bool weigh(const Call& call, const SortOptions& options, Weighed& one) {
  if (!options.by) {
    one.text = one.element;
  } else {
    one.text = pointed_at(call, *options.by, one.element);
  }
  if (options.by_text || !one.text) return true;
  errno = 0;
  char* end = nullptr;
  one.number = std::strtod(one.text->c_str(), &end);
  return *end == '\0' && errno != ERANGE && !std::isnan(one.number);
}

bool in_order(const SortOptions& options, const Weighed& a, const Weighed& b) {
  if (options.by_text) return a.text < b.text;
  return a.number < b.number || (a.number == b.number && a.element < b.element);
}

bool sort_elements(const Call& call, const SortOptions& options, std::vector<std::string>& elements) {
  std::vector<Weighed> weighed;
  weighed.reserve(elements.size());
  for (std::string& element : elements) {
    weighed.push_back({std::move(element), 0, std::nullopt});
    if (weigh(call, options, weighed.back())) continue;
    call.reply.error("ERR One or more scores can't be converted into double");
    return false;
  }
  std::ranges::stable_sort(weighed, [&](const Weighed& a, const Weighed& b) {
    return options.descending ? in_order(options, b, a) : in_order(options, a, b);
  });
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = std::move(weighed[i].element);
  return true;
}

std::span<const std::string> limited(const SortOptions& options, const std::vector<std::string>& elements) {
  const auto size = static_cast<std::int64_t>(elements.size());
  const std::int64_t first = std::clamp<std::int64_t>(options.first, 0, size);
  const std::int64_t count = options.count < 0 ? size - first : std::min(options.count, size - first);
  return std::span(elements).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

// For each element what GET names, or itself.
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
    if (found.empty()) call.changed(key);
  }
  if (!found.empty()) {
    List& list = make_list(call, key);
    for (const auto& one : found) list.elements.emplace_back(one.value_or(std::string()));
    call.changed(key);
  }
  call.reply.integer(static_cast<std::int64_t>(found.size()));
}

void sort_with(const Call& call, Stores stores) {
  SortOptions options;
  if (!parse_options(call, stores, options)) return;
  const Record* record = call.read(call[1]);
  if (record != nullptr && (record->value.type() == Type::string || record->value.type() == Type::hash)) {
    return call.reply.error("WRONGTYPE Operation against a key holding the wrong kind of value");
  }
  const bool is_set = record != nullptr && record->value.type() == Type::set;
  bool as_they_are = options.as_they_are();
  if (as_they_are && is_set && options.store) {
    // A set has no order of its own; what is stored gets one.
    as_they_are = false;
    options.by_text = true;
    options.by.reset();
  }
  std::vector<std::string> elements = elements_of(record);
  if (!as_they_are) {
    if (!sort_elements(call, options, elements)) return;
  } else if (options.descending && !is_set) {
    std::ranges::reverse(elements);
  }
  auto found = results(call, options, limited(options, elements));
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
