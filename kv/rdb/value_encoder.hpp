// A value as snapshots hold it: collections element by element, which every version of Redis reads.
#pragma once

#include "kv/rdb/encoded.hpp"
#include "kv/store/value.hpp"

namespace weir::kv::rdb {

ValueType type_of(const Value& value);
// What follows the type (and, in a file, the key).
void put_value(Encoded& out, const Value& value);

}  // namespace weir::kv::rdb
