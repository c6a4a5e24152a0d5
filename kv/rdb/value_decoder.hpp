// Reads one value from a snapshot, in any of the forms it can have.
#pragma once

#include <optional>

#include "kv/rdb/reader.hpp"
#include "kv/store/list_node.hpp"
#include "kv/store/set.hpp"
#include "kv/store/small_limits.hpp"
#include "kv/store/value.hpp"

namespace weir::kv::rdb {

// Up to which size collections use their small forms, from the settings.
struct Limits {
  SmallLimits hash{512, 64};
  SmallLimits zset{128, 64};
  SetLimits set;
  NodeLimit list;
};

// Nothing if the reader has failed. A collection may be empty: see may_be_kept().
std::optional<Value> read_value(Reader& in, ValueType type, const Limits& limits);

// Whether a key may hold the value: only streams may be empty.
bool may_be_kept(const Value& value);

}  // namespace weir::kv::rdb
