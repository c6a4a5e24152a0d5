// One value out of a snapshot, whichever form it has there.
#pragma once

#include <optional>

#include "kv/rdb/reader.hpp"
#include "kv/store/hash.hpp"
#include "kv/store/value.hpp"

namespace weir::kv::rdb {

// Up to where collections stay small, as the settings say.
struct Limits {
  SmallLimits hash{512, 64};
  SmallLimits zset{128, 64};
  std::size_t most_integers = 512;
  std::uint64_t seed = 1;  // for sorted sets
};

// Nothing: the reader has failed. A collection may come out empty: see may_be_kept().
std::optional<Value> read_value(Reader& in, ValueType type, const Limits& limits);

// Whether a key may hold it: only streams may have no elements.
bool may_be_kept(const Value& value);

}  // namespace weir::kv::rdb
