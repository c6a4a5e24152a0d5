#include "kv/rdb/value_decoder.hpp"

#include <cmath>
#include <memory>

#include "kv/rdb/listpack.hpp"
#include "kv/rdb/stream_value.hpp"
#include "kv/rdb/ziplist.hpp"
#include "kv/store/hash.hpp"
#include "kv/store/list.hpp"
#include "kv/store/set.hpp"
#include "kv/store/zset.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::rdb {

namespace {

// Presents the next `count` texts of `in` through the interface of a compact reader.
class PlainTexts {
 public:
  PlainTexts(Reader& in, std::uint64_t count) : in_(in), left_(count) {}
  bool next(std::string_view& element) {
    if (left_ == 0 || in_.failed()) return false;
    --left_;
    element = in_.text();
    return !in_.failed();
  }
  bool broken() const { return in_.failed(); }

 private:
  Reader& in_;
  std::uint64_t left_;
};

template <class Elements>
bool take_all(Reader& in, Elements elements, List& list, const Limits& limits) {
  std::string_view element;
  while (elements.next(element)) list.push(End::right, element, limits.list);
  if (elements.broken()) in.corrupt("a list's bytes are damaged");
  return !in.failed();
}

template <class Elements>
bool take_all(Reader& in, Elements elements, Set& set, const Limits& limits) {
  std::string_view element;
  while (elements.next(element)) {
    if (!set.insert(element, limits.set)) {
      in.corrupt("a set has a member twice");
      return false;
    }
  }
  if (elements.broken()) in.corrupt("a set's bytes are damaged");
  return !in.failed();
}

template <class Elements>
bool take_all(Reader& in, Elements elements, Hash& hash, const Limits& limits) {
  std::string_view element;
  while (elements.next(element)) {
    const Bytes field(element);
    if (!elements.next(element)) {
      in.corrupt("a hash has a field without value");
      return false;
    }
    if (!hash.set(field.view(), element, limits.hash)) {
      in.corrupt("a hash has a field twice");
      return false;
    }
  }
  if (elements.broken()) in.corrupt("a hash's bytes are damaged");
  return !in.failed();
}

bool add(Reader& in, SortedSet& zset, std::string_view member, double score, const Limits& limits) {
  if (std::isnan(score) || zset.find(member)) {
    in.corrupt(std::isnan(score) ? "a score is no number" : "a sorted set has a member twice");
    return false;
  }
  zset.insert(member, score, limits.zset);
  return true;
}

template <class Elements>
bool take_all(Reader& in, Elements elements, SortedSet& zset, const Limits& limits) {
  std::string_view element;
  while (elements.next(element)) {
    const Bytes member(element);
    std::optional<double> score;
    if (elements.next(element)) score = parse_double(element);
    if (!score) {
      in.corrupt("a member of a sorted set has no score");
      return false;
    }
    if (!add(in, zset, member.view(), *score, limits)) return false;
  }
  if (elements.broken()) in.corrupt("a sorted set's bytes are damaged");
  return !in.failed();
}

bool take_scored(Reader& in, ValueType type, SortedSet& zset, const Limits& limits) {
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    const Bytes member(in.text());
    const double score = type == ValueType::zset ? in.eight_byte_double() : in.text_double();
    if (in.failed() || !add(in, zset, member.view(), score, limits)) return false;
  }
  return !in.failed();
}

bool take_intset(Reader& in, Set& set, const Limits& limits) {
  const std::string_view bytes = in.text();
  constexpr std::size_t header = 8;
  std::uint32_t width = 0;
  std::uint32_t count = 0;
  if (bytes.size() >= header) {
    std::memcpy(&width, bytes.data(), sizeof width);
    std::memcpy(&count, bytes.data() + 4, sizeof count);
  }
  if ((width != 2 && width != 4 && width != 8) || bytes.size() - header != std::uint64_t{count} * width) {
    in.corrupt("a set of integers is damaged");
    return false;
  }
  IntText text;
  for (std::size_t at = header; at < bytes.size(); at += width) {
    std::int64_t value = 0;
    std::memcpy(&value, bytes.data() + at, width);
    const unsigned unused = 64 - 8 * width;
    value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused;
    if (!set.insert(format_int(value, text), limits.set)) {
      in.corrupt("a set has a member twice");
      return false;
    }
  }
  return true;
}

// Lists since Redis 3.2: a sequence of nodes, each a compact sequence or one large element.
bool take_nodes(Reader& in, ValueType type, List& list, const Limits& limits) {
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    std::uint64_t form = node_packed;
    if (type == ValueType::list_of_listpacks) form = in.length();
    const std::string_view bytes = in.text();
    if (in.failed()) return false;
    if (form == node_plain) {
      list.push(End::right, bytes, limits.list);
    } else if (form != node_packed) {
      in.corrupt("a list has a node of unknown form");
    } else if (type == ValueType::list_of_listpacks) {
      take_all(in, Listpack(bytes), list, limits);
    } else {
      take_all(in, Ziplist(bytes), list, limits);
    }
  }
  return !in.failed();
}

bool take_list(Reader& in, ValueType type, List& list, const Limits& limits) {
  if (type == ValueType::list) return take_all(in, PlainTexts(in, in.length()), list, limits);
  if (type == ValueType::list_ziplist) return take_all(in, Ziplist(in.text()), list, limits);
  return take_nodes(in, type, list, limits);
}

bool take_set(Reader& in, ValueType type, Set& set, const Limits& limits) {
  if (type == ValueType::set) return take_all(in, PlainTexts(in, in.length()), set, limits);
  if (type == ValueType::set_listpack) return take_all(in, Listpack(in.text()), set, limits);
  return take_intset(in, set, limits);
}

bool take_time(Reader& in, Hash& hash, std::string_view field, std::int64_t at_ms) {
  if (at_ms < 0 || at_ms > most_field_time_ms) {
    in.corrupt("a field has a time beyond all limits");
    return false;
  }
  hash.expire_at(field, at_ms);
  return true;
}

// Times are counted from the earliest one, which is 1; 0: the field stays.
bool take_timed_hash(Reader& in, Hash& hash, const Limits& limits) {
  const std::int64_t first_ms = in.milliseconds();
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    const std::uint64_t time = in.length();
    const Bytes field(in.text());
    const std::string_view text = in.text();
    if (in.failed()) return false;
    if (!hash.set(field.view(), text, limits.hash)) in.corrupt("a hash has a field twice");
    if (time == 0) continue;
    std::int64_t at_ms = 0;
    if (__builtin_add_overflow(first_ms, time - 1, &at_ms)) at_ms = -1;
    take_time(in, hash, field.view(), at_ms);
  }
  return !in.failed();
}

// Field, value and time, -1 if it has none.
bool take_hash_of_valkey(Reader& in, Hash& hash, const Limits& limits) {
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    const Bytes field(in.text());
    const Bytes text(in.text());
    const std::int64_t at_ms = in.milliseconds();
    if (in.failed()) return false;
    if (!hash.set(field.view(), text.view(), limits.hash)) in.corrupt("a hash has a field twice");
    if (at_ms != -1) take_time(in, hash, field.view(), at_ms);
  }
  return !in.failed();
}

// Field, value and time, 0 if it has none.
bool take_timed_listpack(Reader& in, Hash& hash, const Limits& limits) {
  in.milliseconds();  // the earliest time
  Listpack elements(in.text());
  std::string_view element;
  while (elements.next(element)) {
    const Bytes field(element);
    const Bytes text(elements.next(element) ? element : "");
    if (!elements.next(element)) {
      in.corrupt("a hash has a field without value or time");
      return false;
    }
    const auto at_ms = parse_int(element);
    if (!at_ms || !hash.set(field.view(), text.view(), limits.hash)) {
      in.corrupt(at_ms ? "a hash has a field twice" : "a field's time is no number");
      return false;
    }
    if (*at_ms != 0 && !take_time(in, hash, field.view(), *at_ms)) return false;
  }
  if (elements.broken()) in.corrupt("a hash's bytes are damaged");
  return !in.failed();
}

bool take_hash(Reader& in, ValueType type, Hash& hash, const Limits& limits) {
  if (type == ValueType::hash_listpack) return take_all(in, Listpack(in.text()), hash, limits);
  if (type == ValueType::hash_ziplist) return take_all(in, Ziplist(in.text()), hash, limits);
  if (type == ValueType::hash_zipmap) return take_all(in, Zipmap(in.text()), hash, limits);
  if (type == ValueType::hash_of_valkey) return take_hash_of_valkey(in, hash, limits);
  if (type == ValueType::hash_timed) return take_timed_hash(in, hash, limits);
  if (type == ValueType::hash_timed_listpack) return take_timed_listpack(in, hash, limits);
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    const Bytes field(in.text());
    const std::string_view text = in.text();
    if (in.failed()) return false;
    if (!hash.set(field.view(), text, limits.hash)) in.corrupt("a hash has a field twice");
  }
  return !in.failed();
}

bool take_zset(Reader& in, ValueType type, SortedSet& zset, const Limits& limits) {
  if (type == ValueType::zset_listpack) return take_all(in, Listpack(in.text()), zset, limits);
  if (type == ValueType::zset_ziplist) return take_all(in, Ziplist(in.text()), zset, limits);
  return take_scored(in, type, zset, limits);
}

// Decodes a module type's id: nine characters of six bits.
std::string module_name(std::uint64_t number) {
  constexpr std::string_view characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string name;
  for (int i = 0; i < 9; ++i) name += characters[number >> (58 - 6 * i) & 0x3f];
  return name;
}

}  // namespace

std::optional<Value> read_value(Reader& in, ValueType type, const Limits& limits) {
  switch (type) {
    case ValueType::string: {
      Value value{Bytes(in.text())};
      if (in.failed()) return std::nullopt;
      return value;
    }
    case ValueType::list:
    case ValueType::list_ziplist:
    case ValueType::list_of_ziplists:
    case ValueType::list_of_listpacks: {
      List list;
      if (!take_list(in, type, list, limits)) return std::nullopt;
      return Value(std::move(list));
    }
    case ValueType::set:
    case ValueType::set_intset:
    case ValueType::set_listpack: {
      Set set;
      if (!take_set(in, type, set, limits)) return std::nullopt;
      return Value(std::move(set));
    }
    case ValueType::hash:
    case ValueType::hash_zipmap:
    case ValueType::hash_ziplist:
    case ValueType::hash_listpack:
    case ValueType::hash_of_valkey:
    case ValueType::hash_timed:
    case ValueType::hash_timed_listpack: {
      Hash hash;
      if (!take_hash(in, type, hash, limits)) return std::nullopt;
      return Value(std::move(hash));
    }
    case ValueType::zset_text:
    case ValueType::zset:
    case ValueType::zset_ziplist:
    case ValueType::zset_listpack: {
      SortedSet zset;
      if (!take_zset(in, type, zset, limits)) return std::nullopt;
      return Value(std::move(zset));
    }
    case ValueType::stream_1:
    case ValueType::stream_2:
    case ValueType::stream_3: {
      auto stream = read_stream(in, type);
      if (stream == nullptr) return std::nullopt;
      return Value(stream.release());
    }
    case ValueType::module_1:
    case ValueType::module_2:
      in.fail(Error::Kind::unsupported, "a value of the module type " + module_name(in.length()) +
                                            ", and this server loads no modules");
      return std::nullopt;
  }
  in.fail(Error::Kind::unsupported, "a value of unknown type " + std::to_string(static_cast<int>(type)));
  return std::nullopt;
}

bool may_be_kept(const Value& value) { return value.type() == Type::stream || value.elements() != 0; }

}  // namespace weir::kv::rdb
