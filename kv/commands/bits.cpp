// Strings as bits; the first bit of a byte is its highest.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <span>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/string_value.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

bool bit_offset(const Call& call, std::size_t at, std::uint64_t& offset) {
  const auto parsed = parse_int(call[at]);
  if (parsed && *parsed >= 0 && (*parsed >> 3) < call.server.settings.proto_max_bulk_len) {
    offset = static_cast<std::uint64_t>(*parsed);
    return true;
  }
  call.reply.error("ERR bit offset is not an integer or out of range");
  return false;
}

void setbit(const Call& call) {
  std::uint64_t offset = 0;
  if (!bit_offset(call, 2, offset)) return;
  if (call[3] != "0" && call[3] != "1") return call.reply.error("ERR bit is not an integer or out of range");
  Record* record = call.write(call[1]);
  if (!call.typed(record, Type::string)) return;
  if (record == nullptr) record = &call.db.insert(call[1]);
  Bytes& text = record->value.text();
  const bool before = bit_at(text.view(), offset);
  const bool wanted = call[3] == "1";
  const std::size_t size = std::max<std::size_t>(text.size(), (offset >> 3) + 1);
  if (before != wanted || size != text.size()) {
    const auto mask = static_cast<unsigned char>(0x80u >> (offset & 7));
    char& byte = text.grow_zeroed(size)[offset >> 3];
    byte = static_cast<char>(wanted ? byte | mask : byte & ~mask);
    record->value.mark(Value::Made::edited);
    call.changed(call[1]);
  }
  call.reply.integer(before ? 1 : 0);
}

void getbit(const Call& call) {
  std::uint64_t offset = 0;
  if (!bit_offset(call, 2, offset)) return;
  const Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  call.reply.integer(record != nullptr && bit_at(record->value.text().view(), offset) ? 1 : 0);
}

std::int64_t ones_in(std::string_view bytes) {
  std::int64_t ones = 0;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    ones += std::popcount(word);
  }
  for (const char c : bytes) ones += std::popcount(static_cast<unsigned char>(c));
  return ones;
}

// How many bytes at the front equal `byte`.
std::size_t bytes_of(std::string_view bytes, unsigned char byte) {
  const std::uint64_t all = std::uint64_t{0x0101010101010101} * byte;
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= bytes.size(); at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if (word != all) break;
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) == byte) ++at;
  return at;
}

// A range of bits [first, last] of a string.
struct BitRange {
  std::int64_t first = 0;
  std::int64_t last = -1;
  bool reversed = false;  // both ends counted from the back, in the wrong order
};

// Parses "start end [BYTE|BIT]" from argument `at`, clamped to the text; last < first means empty. Replies
// with the error if it is wrong.
bool parse_range(const Call& call, std::size_t at, std::string_view text, BitRange& range) {
  std::int64_t start = 0;
  std::int64_t end = -1;
  if (!call.integer(at, start)) return false;
  if (at + 1 < call.count() && !call.integer(at + 1, end)) return false;
  bool by_bit = false;
  if (at + 2 < call.count()) {
    by_bit = is_word(call[at + 2], "BIT");
    if (!by_bit && !is_word(call[at + 2], "BYTE")) {
      call.syntax_error();
      return false;
    }
  }
  const auto bytes = static_cast<std::int64_t>(text.size());
  const std::int64_t total = by_bit ? bytes * 8 : bytes;
  range.reversed = start < 0 && end < 0 && start > end;
  if (start < 0) start = std::max<std::int64_t>(start + total, 0);
  if (end < 0) end = std::max<std::int64_t>(end + total, 0);
  end = std::min(end, total - 1);
  if (start > end) {
    start = 0;
    end = -1;
  }
  range.first = by_bit ? start : start * 8;
  range.last = by_bit ? end : end * 8 + 7;
  return true;
}

// The text at the key. A key that does not exist has an empty one, against which a range is not checked.
std::string_view text_or_nothing(const Record* record) {
  return record == nullptr ? std::string_view() : record->value.text().view();
}

// A range that is wrong is refused whether the key exists or not, as since Valkey 8.1, and the end of one may
// be left out.
void bitcount(const Call& call) {
  if (call.count() > 5) return call.syntax_error();
  BitRange checked;
  if (call.count() > 2 && !parse_range(call, 2, {}, checked)) return;
  const Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  const std::string_view text = text_or_nothing(record);
  BitRange range{0, static_cast<std::int64_t>(text.size()) * 8 - 1};
  if (call.count() > 2 && !parse_range(call, 2, text, range)) return;
  // BITPOS does not check the order before it clamps the ends to the text; Redis is inconsistent there.
  if (range.reversed || range.last < range.first) return call.reply.integer(0);
  const auto first_byte = static_cast<std::size_t>(range.first >> 3);
  const auto last_byte = static_cast<std::size_t>(range.last >> 3);
  std::int64_t ones = ones_in(text.substr(first_byte, last_byte - first_byte + 1));
  for (std::int64_t i = range.first & ~7; i < range.first; ++i)
    ones -= bit_at(text, static_cast<std::uint64_t>(i)) ? 1 : 0;
  for (std::int64_t i = range.last + 1; (i & 7) != 0; ++i)
    ones -= bit_at(text, static_cast<std::uint64_t>(i)) ? 1 : 0;
  call.reply.integer(ones);
}

void bitpos(const Call& call) {
  const auto wanted = parse_int(call[2]);
  if (!wanted) return call.reply.error("ERR value is not an integer or out of range");
  if (*wanted != 0 && *wanted != 1) return call.reply.error("ERR The bit argument must be 1 or 0.");
  if (call.count() > 6) return call.syntax_error();
  BitRange checked;
  if (call.count() > 3 && !parse_range(call, 3, {}, checked)) return;
  const Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  const std::string_view text = text_or_nothing(record);
  const bool ends = call.count() > 4;
  BitRange range{0, static_cast<std::int64_t>(text.size()) * 8 - 1};
  if (call.count() > 3 && !parse_range(call, 3, text, range)) return;
  if (record == nullptr) return call.reply.integer(*wanted == 1 ? -1 : 0);
  const unsigned char dull = *wanted == 1 ? 0x00 : 0xff;
  for (std::int64_t i = range.first; i <= range.last; ++i) {
    if ((i & 7) == 0) {
      const auto bytes =
          text.substr(static_cast<std::size_t>(i >> 3), static_cast<std::size_t>((range.last + 1 - i) >> 3));
      if (const std::size_t skipped = bytes_of(bytes, dull); skipped != 0) {
        i += static_cast<std::int64_t>(skipped) * 8 - 1;
        continue;
      }
    }
    if (bit_at(text, static_cast<std::uint64_t>(i)) == (*wanted == 1)) return call.reply.integer(i);
  }
  // Without an end, endless zeros are assumed to follow the string.
  if (*wanted == 0 && !ends && range.first <= range.last) return call.reply.integer(range.last + 1);
  call.reply.integer(-1);
}

// `into` is the longer string; the other one counts as padded with zeros. Plain loops, which
// the compiler vectorizes.
void combine_bits(std::span<char> into, std::string_view other, char kind) {
  const std::size_t size = other.size();
  const auto each = [&](auto operation) {
    for (std::size_t i = 0; i < size; ++i) into[i] = static_cast<char>(operation(into[i], other[i]));
  };
  switch (kind) {
    case 'a':
      each(std::bit_and<>());
      std::ranges::fill(into.subspan(size), '\0');
      return;
    case 'o':
      return each(std::bit_or<>());
    default:
      return each(std::bit_xor<>());
  }
}

void bitop(const Call& call) {
  const std::string_view word = call[1];
  const bool negate = is_word(word, "NOT");
  if (!negate && !is_word(word, "AND") && !is_word(word, "OR") && !is_word(word, "XOR"))
    return call.syntax_error();
  if (negate && call.count() != 4)
    return call.reply.error("ERR BITOP NOT must be called with a single source key.");
  std::vector<std::string_view> sources;
  std::size_t size = 0;
  for (std::size_t i = 3; i < call.count(); ++i) {
    const Record* record = call.read(call[i]);
    if (!call.typed(record, Type::string)) return;
    sources.push_back(record == nullptr ? std::string_view("") : record->value.text().view());
    size = std::max(size, sources.back().size());
  }
  Bytes result(sources[0]);
  const std::span bytes(result.grow_zeroed(size), size);
  const char kind = static_cast<char>(word[0] | 0x20);
  for (std::string_view other : std::span(sources).subspan(1)) combine_bits(bytes, other, kind);
  if (negate) std::ranges::transform(bytes, bytes.begin(), [](char c) { return static_cast<char>(~c); });
  if (size == 0) {
    call.erase(call[2]);
  } else {
    Record* record = call.write(call[2]);
    store_text(call, record, call[2], Argument{result.view(), result.shared()});
    record->value.mark(Value::Made::edited);
    call.db.clear_expiry(*record);
    call.changed(call[2]);
  }
  call.reply.integer(static_cast<std::int64_t>(size));
}

}  // namespace

std::span<const Command> bit_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"setbit", 4, write | denyoom, 1, 1, 1, setbit, "bitmap", "Sets or clears a bit."},
      {"getbit", 3, readonly | fast, 1, 1, 1, getbit, "bitmap", "Returns a bit."},
      {"bitcount", -2, readonly, 1, 1, 1, bitcount, "bitmap", "Counts the bits that are set."},
      {"bitpos", -3, readonly, 1, 1, 1, bitpos, "bitmap", "Finds the first bit that is set or clear."},
      {"bitop", -4, write | denyoom, 2, -1, 1, bitop, "bitmap", "Combines strings bit by bit."},
  };
  return commands;
}

}  // namespace weir::kv
