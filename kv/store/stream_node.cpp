#include "kv/store/stream_node.hpp"

#include <algorithm>
#include <limits>

namespace weir::kv {

namespace {

constexpr std::int64_t deleted_flag = 1;
constexpr std::int64_t shares_names_flag = 2;
// Flags, ms and seq.
constexpr std::size_t id_elements = 3;

// What elements take beside their text, at most: an encoding and a size.
constexpr std::size_t around_text = 2;
constexpr std::size_t around_entry = 32;

std::size_t text_bytes(StreamWords words) {
  std::size_t bytes = 0;
  for (const std::string_view word : words) bytes += word.size();
  return bytes;
}

// Reads elements of bytes from outside one after another, as far as there are any.
class Elements {
 public:
  explicit Elements(const Listpack& pack) : at_(pack.begin()), end_(pack.end()) {}

  bool at_end() const { return at_ == end_; }
  listpack::Place place() const { return at_; }
  bool skip(std::uint64_t elements) {
    for (; elements != 0; --elements) {
      if (at_end()) return false;
      at_ = listpack::next(at_);
    }
    return true;
  }
  std::optional<std::int64_t> integer() {
    if (at_end() || !listpack::is_integer(at_)) return std::nullopt;
    const std::int64_t value = listpack::integer(at_);
    at_ = listpack::next(at_);
    return value;
  }
  std::optional<std::uint64_t> count() {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    const auto value = integer();
    if (!value || *value < 0 || *value > most) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
  }

 private:
  listpack::Place at_;
  listpack::Place end_;
};

struct EntrySeen {
  StreamId id;
  bool deleted;
};

// One entry behind the names; nothing: it is not one.
std::optional<EntrySeen> take_entry(Elements& elements, StreamId base, std::uint64_t shared_names) {
  // Flags are changed where they are, so they must be written as we write them.
  if (elements.at_end() || listpack::next(elements.place()) - elements.place() != 2) return std::nullopt;
  const auto flags = elements.integer();
  const auto ms = elements.integer();
  const auto seq = elements.integer();
  if (!flags || !ms || !seq || (*flags & ~(deleted_flag | shares_names_flag)) != 0) return std::nullopt;
  const bool shares = (*flags & shares_names_flag) != 0;
  const auto fields = shares ? shared_names : elements.count();
  if (!fields || !elements.skip(shares ? *fields : *fields * 2)) return std::nullopt;
  const auto counted = elements.count();
  if (counted != id_elements + (shares ? *fields : *fields * 2 + 1)) return std::nullopt;
  const StreamId id{base.ms + static_cast<std::uint64_t>(*ms), base.seq + static_cast<std::uint64_t>(*seq)};
  return EntrySeen{id, (*flags & deleted_flag) != 0};
}

}  // namespace

StreamNode::StreamNode(StreamWords first)
    : pack_(text_bytes(first) + first.size() * around_text + around_entry) {
  pack_.append(std::int64_t{0});
  pack_.append(std::int64_t{0});
  pack_.append(static_cast<std::int64_t>(first.size() / 2));
  for (std::size_t i = 0; i < first.size(); i += 2) pack_.append(first[i]);
  pack_.append(std::int64_t{0});
}

std::optional<StreamNode> StreamNode::adopt(StreamId base, std::string_view bytes, StreamId& last) {
  if (!listpack::check(bytes)) return std::nullopt;
  StreamNode node(bytes);
  Elements elements(node.pack_);
  const auto live = elements.count();
  const auto deleted = elements.count();
  const auto names = elements.count();
  if (!live || !deleted || !names || !elements.skip(*names) || elements.integer() != 0) return std::nullopt;
  std::uint64_t deleted_seen = 0;
  std::uint64_t seen = 0;
  for (; !elements.at_end(); ++seen) {
    const auto entry = take_entry(elements, base, *names);
    if (!entry || (seen == 0 ? entry->id < base : entry->id <= last)) return std::nullopt;
    last = entry->id;
    deleted_seen += entry->deleted ? 1 : 0;
  }
  if (seen == 0 || deleted_seen != *deleted || seen - deleted_seen != *live) return std::nullopt;
  return node;
}

bool StreamNode::takes(std::size_t bytes, StreamNodeLimits limits) const {
  const std::size_t most = limits.bytes == 0 ? most_bytes : std::min(limits.bytes, most_bytes);
  if (pack_.size() + bytes >= most) return false;
  return limits.entries == 0 || live() + deleted() < limits.entries;
}

listpack::Place StreamNode::behind_names() const {
  const listpack::Place at = field_count();
  // Its own place, the names and the zero.
  return listpack::skip(at, static_cast<std::size_t>(listpack::integer(at)) + 2);
}

bool StreamNode::has_names(StreamWords words) const {
  const listpack::Place count = field_count();
  if (static_cast<std::size_t>(listpack::integer(count)) != words.size() / 2) return false;
  listpack::Place at = listpack::next(count);
  IntText room;
  for (std::size_t i = 0; i < words.size(); i += 2, at = listpack::next(at)) {
    if (listpack::text(at, room) != words[i]) return false;
  }
  return true;
}

void StreamNode::append(StreamId base, StreamId id, StreamWords words) {
  pack_.reserve(text_bytes(words) + words.size() * around_text + around_entry);
  const bool shares = has_names(words);
  pack_.replace(pack_.begin(), listpack::integer(pack_.begin()) + 1);
  pack_.append(shares ? shares_names_flag : 0);
  pack_.append(static_cast<std::int64_t>(id.ms - base.ms));
  pack_.append(static_cast<std::int64_t>(id.seq - base.seq));
  const std::size_t fields = words.size() / 2;
  if (!shares) pack_.append(static_cast<std::int64_t>(fields));
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (!shares) pack_.append(words[i]);
    pack_.append(words[i + 1]);
  }
  pack_.append(static_cast<std::int64_t>(id_elements + (shares ? fields : 2 * fields + 1)));
}

void StreamNode::flag_deleted(const Entry& entry) {
  pack_.replace(entry.begin, listpack::integer(entry.begin) | deleted_flag);
}

void StreamNode::count_deleted(std::size_t entries) {
  const auto more = static_cast<std::int64_t>(entries);
  const listpack::Place live = pack_.replace(pack_.begin(), listpack::integer(pack_.begin()) - more);
  const listpack::Place deleted = listpack::next(live);
  pack_.replace(deleted, listpack::integer(deleted) + more);
}

StreamNode::Entry StreamNode::read(StreamId base, listpack::Place begin) const {
  Entry entry;
  entry.begin = begin;
  const std::int64_t flags = listpack::integer(begin);
  entry.deleted = (flags & deleted_flag) != 0;
  entry.shares_names = (flags & shares_names_flag) != 0;
  listpack::Place at = listpack::next(begin);
  entry.id.ms = base.ms + static_cast<std::uint64_t>(listpack::integer(at));
  at = listpack::next(at);
  entry.id.seq = base.seq + static_cast<std::uint64_t>(listpack::integer(at));
  at = listpack::next(at);
  if (entry.shares_names) {
    entry.fields = static_cast<std::size_t>(listpack::integer(field_count()));
  } else {
    entry.fields = static_cast<std::size_t>(listpack::integer(at));
    at = listpack::next(at);
  }
  entry.body = at;
  return entry;
}

listpack::Place StreamNode::behind(const Entry& entry) {
  return listpack::skip(entry.body, (entry.shares_names ? entry.fields : 2 * entry.fields) + 1);
}

std::optional<StreamNode::Entry> StreamNode::first(StreamId base) const {
  const listpack::Place at = behind_names();
  if (at == pack_.end()) return std::nullopt;
  return read(base, at);
}

std::optional<StreamNode::Entry> StreamNode::after(StreamId base, const Entry& entry) const {
  const listpack::Place at = behind(entry);
  if (at == pack_.end()) return std::nullopt;
  return read(base, at);
}

std::optional<StreamNode::Entry> StreamNode::last(StreamId base) const {
  Entry end;
  end.begin = pack_.end();
  return before(base, end);
}

std::optional<StreamNode::Entry> StreamNode::before(StreamId base, const Entry& entry) const {
  listpack::Place at = listpack::previous(entry.begin);
  std::int64_t elements = listpack::integer(at);
  if (elements == 0) return std::nullopt;  // the end of the names
  for (; elements != 0; --elements) at = listpack::previous(at);
  return read(base, at);
}

}  // namespace weir::kv
