// Writes a value in the form that every version of Redis reads: collections element by element. Only hashes
// whose fields expire need a newer one, Redis 7.4's.
#pragma once

#include "kv/rdb/encoded.hpp"
#include "kv/store/value.hpp"

namespace weir::kv::rdb {

ValueType type_of(const Value& value);
// Writes what follows the type (and, in a file, the key).
void put_value(Encoded& out, const Value& value);

}  // namespace weir::kv::rdb
