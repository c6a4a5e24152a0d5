// A stream as snapshots hold it: its nodes as they are, its ids, and its groups with what is pending.
#pragma once

#include <memory>

#include "kv/rdb/encoded.hpp"
#include "kv/rdb/reader.hpp"
#include "kv/store/stream.hpp"

namespace weir::kv::rdb {

void put_stream(Encoded& out, const Stream& stream);
// Null: the reader has failed.
std::unique_ptr<Stream> read_stream(Reader& in, ValueType type);

}  // namespace weir::kv::rdb
