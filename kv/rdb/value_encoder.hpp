// Writes a value in the form that every version of Redis reads: collections element by element. Only hashes
// whose fields expire need a newer one, of which there are two.
#pragma once

#include "kv/rdb/encoded.hpp"
#include "kv/rdb/format.hpp"
#include "kv/store/value.hpp"

namespace weir::kv::rdb {

ValueType type_of(const Value& value, Dialect dialect = Dialect::redis);
// Writes what follows the type (and, in a file, the key).
void put_value(Encoded& out, const Value& value, Dialect dialect = Dialect::redis);

}  // namespace weir::kv::rdb
