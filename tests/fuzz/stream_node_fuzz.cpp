// Nodes of streams from outside. An accepted node must read the same from both ends, and must withstand
// all operations on streams.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kv/store/stream.hpp"

namespace {

using namespace weir::kv;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<StreamId> ids_of(const Stream& stream, StreamCursor::Order order) {
  std::vector<StreamId> ids;
  StreamCursor cursor(stream, {}, StreamId::highest(), order);
  while (cursor.next()) {
    std::size_t pairs = 0;
    cursor.for_each_pair([&](std::string_view, std::string_view) { ++pairs; });
    require(pairs == cursor.fields());
    if (order == StreamCursor::Order::forward) {
      ids.push_back(cursor.id());
    } else {
      ids.insert(ids.begin(), cursor.id());
    }
  }
  return ids;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Stream stream;
  const StreamId base{1000, 5};
  if (!stream.adopt_node(base, {reinterpret_cast<const char*>(data), size})) return 0;
  const std::vector<StreamId> ids = ids_of(stream, StreamCursor::Order::forward);
  require(ids == ids_of(stream, StreamCursor::Order::backward));
  require(ids.size() == stream.size());
  require(stream.count({}, StreamId::highest(), ids.size() + 1) == ids.size());
  std::size_t left = ids.size();
  if (!ids.empty()) {
    require(stream.erase(ids[ids.size() / 2]));
    --left;
  }
  if (const auto next = stream.last_id.next()) {
    const std::string_view words[] = {"name", "value", "1", "2"};
    stream.append(*next, words, {});
    ++left;
  }
  require(ids_of(stream, StreamCursor::Order::backward).size() == left);
  StreamTrim trim;
  trim.down = StreamTrim::Down::to_length;
  trim.length = left / 2;
  stream.trim(trim);
  require(ids_of(stream, StreamCursor::Order::forward).size() == left / 2);
  return 0;
}
