// A stream as snapshots store it: its nodes unchanged, its ids, and its groups with their pending entries.
#pragma once

#include <memory>

#include "kv/rdb/encoded.hpp"
#include "kv/rdb/reader.hpp"
#include "kv/store/stream.hpp"

namespace weir::kv::rdb {

void put_stream(Encoded& out, const Stream& stream);
// Null if the reader has failed.
std::unique_ptr<Stream> read_stream(Reader& in, ValueType type);

}  // namespace weir::kv::rdb
