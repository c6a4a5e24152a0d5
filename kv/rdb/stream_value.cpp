#include "kv/rdb/stream_value.hpp"

#include <cstring>

namespace weir::kv::rdb {

namespace {

constexpr std::size_t id_size = 16;

// Both numbers of the id, big-endian.
std::string raw_id(StreamId id) {
  const std::uint64_t parts[] = {__builtin_bswap64(id.ms), __builtin_bswap64(id.seq)};
  std::string bytes(id_size, '\0');
  std::memcpy(bytes.data(), parts, id_size);
  return bytes;
}

StreamId id_of(Reader& in, std::string_view bytes) {
  std::uint64_t parts[2] = {};
  if (bytes.size() == id_size) {
    std::memcpy(parts, bytes.data(), id_size);
  } else {
    in.corrupt("an id of a stream has not 16 bytes");
  }
  return {__builtin_bswap64(parts[0]), __builtin_bswap64(parts[1])};
}

void put_id(Encoded& out, StreamId id) {
  out.put_length(id.ms);
  out.put_length(id.seq);
}

StreamId length_id(Reader& in) {
  const std::uint64_t ms = in.length();
  return {ms, in.length()};
}

void put_group(Encoded& out, const std::string& name, const StreamGroup& group) {
  out.put_text(name);
  put_id(out, group.last_id);
  out.put_length(static_cast<std::uint64_t>(group.entries_read));
  out.put_length(group.pending().size());
  for (const auto& [id, pending] : group.pending()) {
    out.put_raw(raw_id(id));
    out.put_milliseconds(pending.delivered_ms);
    out.put_length(pending.deliveries);
  }
  out.put_length(group.consumers().size());
  for (const auto& [consumer_name, consumer] : group.consumers()) {
    out.put_text(consumer_name);
    out.put_milliseconds(consumer->seen_ms);
    out.put_length(consumer->pending.size());
    for (const StreamId id : consumer->pending) out.put_raw(raw_id(id));
  }
}

struct Delivery {
  std::int64_t at_ms;
  std::uint64_t times;
};

// Reads the consumers and assigns them the pending entries; every entry must belong to exactly one.
bool read_consumers(Reader& in, ValueType type, StreamGroup& group,
                    const absl::btree_map<StreamId, Delivery>& deliveries) {
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    const std::string name(in.text());
    const std::int64_t seen_ms = in.milliseconds();
    if (type == ValueType::stream_3) in.milliseconds();  // time of its last successful read
    if (in.failed()) return false;
    if (group.find_consumer(name) != nullptr) return in.corrupt("a group has a consumer twice"), false;
    StreamConsumer& consumer = group.add_consumer(name, seen_ms);
    for (std::uint64_t pending = in.length(); pending > 0 && !in.failed(); --pending) {
      const StreamId id = id_of(in, in.raw(id_size));
      const auto delivery = deliveries.find(id);
      if (in.failed()) return false;
      if (delivery == deliveries.end() || group.find(id) != nullptr)
        return in.corrupt("a consumer has an entry that its group has not, or another has too"), false;
      StreamGroup::Pending& given = group.give(id, consumer);
      given.delivered_ms = delivery->second.at_ms;
      given.deliveries = delivery->second.times;
    }
  }
  if (!in.failed() && group.pending().size() != deliveries.size()) in.corrupt("a pending entry is nobody's");
  return !in.failed();
}

bool read_group(Reader& in, ValueType type, Stream& stream) {
  const std::string name(in.text());
  const StreamId last = length_id(in);
  const std::int64_t read =
      type == ValueType::stream_1 ? stream.estimate_read(last) : static_cast<std::int64_t>(in.length());
  if (in.failed()) return false;
  StreamGroup* const group = stream.add_group(name, last, read);
  if (group == nullptr) return in.corrupt("a stream has a group twice"), false;
  absl::btree_map<StreamId, Delivery> deliveries;
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    const StreamId id = id_of(in, in.raw(id_size));
    const std::int64_t at_ms = in.milliseconds();
    if (!deliveries.emplace(id, Delivery{at_ms, in.length()}).second) in.corrupt("an entry is pending twice");
  }
  return !in.failed() && read_consumers(in, type, *group, deliveries);
}

}  // namespace

void put_stream(Encoded& out, const Stream& stream) {
  out.put_length(stream.nodes().size());
  for (const auto& [base, node] : stream.nodes()) {
    out.put_text(raw_id(base));
    out.put_text(node.bytes());
  }
  out.put_length(stream.size());
  put_id(out, stream.last_id);
  put_id(out, stream.first_id());
  put_id(out, stream.max_deleted);
  out.put_length(stream.entries_added);
  out.put_length(stream.groups().size());
  for (const auto& [name, group] : stream.groups()) put_group(out, name, *group);
}

std::unique_ptr<Stream> read_stream(Reader& in, ValueType type) {
  auto stream = std::make_unique<Stream>();
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    const StreamId base = id_of(in, in.text());
    const std::string_view bytes = in.text();
    if (!in.failed() && !stream->adopt_node(base, bytes)) in.corrupt("a node of a stream is damaged");
  }
  const std::uint64_t size = in.length();
  stream->last_id = length_id(in);
  stream->entries_added = size;
  if (type != ValueType::stream_1) {
    length_id(in);  // the first id, which the nodes give as well
    stream->max_deleted = length_id(in);
    stream->entries_added = in.length();
  }
  if (in.failed()) return nullptr;
  if (size != stream->size() || stream->newest() > stream->last_id) {
    in.corrupt("a stream's counts contradict its entries");
    return nullptr;
  }
  for (std::uint64_t left = in.length(); left > 0 && !in.failed(); --left) {
    if (!read_group(in, type, *stream)) return nullptr;
  }
  return in.failed() ? nullptr : std::move(stream);
}

}  // namespace weir::kv::rdb
