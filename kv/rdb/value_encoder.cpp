#include "kv/rdb/value_encoder.hpp"

#include "kv/rdb/stream_value.hpp"
#include "kv/store/hash.hpp"
#include "kv/store/list.hpp"
#include "kv/store/set.hpp"
#include "kv/store/zset.hpp"

namespace weir::kv::rdb {

namespace {

// As every version of Redis reads it.
void put_hash(Encoded& out, const Hash& hash) {
  out.put_length(hash.size());
  hash.for_each_stored([&](std::string_view field, std::string_view text) {
    out.put_text(field);
    out.put_text(text);
  });
}

// Each field's time comes first, counted from the hash's earliest one, which is 1; 0: the field stays.
void put_timed_hash(Encoded& out, const Hash& hash) {
  const std::int64_t first_ms = hash.times()->next_ms();
  out.put_milliseconds(first_ms);
  out.put_length(hash.size());
  hash.for_each_stored([&](std::string_view field, std::string_view text) {
    const std::int64_t at_ms = hash.time_of(field);
    out.put_length(at_ms == FieldTimes::never ? 0 : static_cast<std::uint64_t>(at_ms - first_ms) + 1);
    out.put_text(field);
    out.put_text(text);
  });
}

// Each field's time comes behind it, -1 if it stays.
void put_hash_of_valkey(Encoded& out, const Hash& hash) {
  out.put_length(hash.size());
  hash.for_each_stored([&](std::string_view field, std::string_view text) {
    const std::int64_t at_ms = hash.time_of(field);
    out.put_text(field);
    out.put_text(text);
    out.put_milliseconds(at_ms == FieldTimes::never ? -1 : at_ms);
  });
}

}  // namespace

ValueType type_of(const Value& value, Dialect dialect) {
  switch (value.type()) {
    case Type::string:
      break;
    case Type::list:
      return ValueType::list;
    case Type::set:
      return ValueType::set;
    case Type::hash:
      if (value.hash().times() == nullptr) return ValueType::hash;
      return dialect == Dialect::valkey ? ValueType::hash_of_valkey : ValueType::hash_timed;
    case Type::zset:
      return ValueType::zset;
    case Type::stream:
      return ValueType::stream_2;
  }
  return ValueType::string;
}

void put_value(Encoded& out, const Value& value, Dialect dialect) {
  if (value.type() == Type::string) return out.put_text(value.text().view());
  if (value.type() == Type::stream) return put_stream(out, value.stream());
  if (value.type() == Type::hash) {
    const Hash& hash = value.hash();
    if (hash.times() == nullptr) return put_hash(out, hash);
    return dialect == Dialect::valkey ? put_hash_of_valkey(out, hash) : put_timed_hash(out, hash);
  }
  out.put_length(value.elements());
  switch (value.type()) {
    case Type::string:
    case Type::stream:
    case Type::hash:
      break;
    case Type::list:
      value.list().for_each([&](std::string_view element) {
        out.put_text(element);
        return true;
      });
      break;
    case Type::set:
      value.set().for_each([&](std::string_view member) {
        out.put_text(member);
        return true;
      });
      break;
    case Type::zset: {
      const SortedSet& zset = value.zset();
      // From highest to lowest, as Redis does: the reader then inserts each at the front, the shortest
      // search.
      zset.for_each(Ranks{0, zset.size()}, Walk::backward, [&](std::string_view member, double score) {
        out.put_text(member);
        out.put_double(score);
        return true;
      });
      break;
    }
  }
}

}  // namespace weir::kv::rdb
