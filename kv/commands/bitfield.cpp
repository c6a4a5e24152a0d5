// BITFIELD: strings as arrays of integers of any width, signed or unsigned, at any bit.
#include <algorithm>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/string_value.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

enum class Overflow : std::uint8_t { wrap, saturate, fail };
enum class Action : std::uint8_t { get, set, increment };

struct FieldType {
  bool is_signed = false;
  unsigned bits = 0;  // 1 to 64 if signed, to 63 if not: a reply is a signed 64-bit number
};

struct FieldOperation {
  Action action = Action::get;
  FieldType type;
  std::uint64_t offset = 0;
  std::int64_t operand = 0;
  Overflow overflow = Overflow::wrap;

  std::uint64_t end() const { return offset + type.bits; }
};

// Holds any field's value and the sum of any two.
using Wide = __int128;

bool parse_type(const Call& call, std::size_t at, FieldType& type) {
  const std::string_view text = call[at];
  const auto bits = text.empty() ? std::nullopt : parse_int(text.substr(1));
  const bool is_signed = !text.empty() && text[0] == 'i';
  const bool known = is_signed || (!text.empty() && text[0] == 'u');
  if (!known || !bits || *bits < 1 || *bits > (is_signed ? 64 : 63)) {
    call.reply.error(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.");
    return false;
  }
  type = {is_signed, static_cast<unsigned>(*bits)};
  return true;
}

// "100", or "#3": the offset of field number 3, counted from 0, in fields of this width.
bool parse_offset(const Call& call, std::size_t at, const FieldType& type, std::uint64_t& offset) {
  std::string_view text = call[at];
  const bool counted = text.starts_with('#');
  if (counted) text.remove_prefix(1);
  auto parsed = parse_int(text);
  if (parsed && counted && __builtin_mul_overflow(*parsed, std::int64_t{type.bits}, &*parsed)) parsed.reset();
  if (!parsed || *parsed < 0 || (*parsed >> 3) >= call.server.settings.proto_max_bulk_len) {
    call.reply.error("ERR bit offset is not an integer or out of range");
    return false;
  }
  offset = static_cast<std::uint64_t>(*parsed);
  return true;
}

bool parse_overflow(const Call& call, std::size_t at, Overflow& overflow) {
  if (is_word(call[at], "WRAP")) {
    overflow = Overflow::wrap;
  } else if (is_word(call[at], "SAT")) {
    overflow = Overflow::saturate;
  } else if (is_word(call[at], "FAIL")) {
    overflow = Overflow::fail;
  } else {
    call.reply.error("ERR Invalid OVERFLOW type specified");
    return false;
  }
  return true;
}

bool parse_operations(const Call& call, std::vector<FieldOperation>& operations) {
  Overflow overflow = Overflow::wrap;
  for (std::size_t at = 2; at < call.count();) {
    const std::size_t more = call.count() - 1 - at;
    if (is_word(call[at], "OVERFLOW") && more >= 1) {
      if (!parse_overflow(call, at + 1, overflow)) return false;
      at += 2;
      continue;
    }
    FieldOperation operation;
    operation.overflow = overflow;
    if (is_word(call[at], "SET") && more >= 3) {
      operation.action = Action::set;
    } else if (is_word(call[at], "INCRBY") && more >= 3) {
      operation.action = Action::increment;
    } else if (!is_word(call[at], "GET") || more < 2) {
      call.syntax_error();
      return false;
    }
    if (!parse_type(call, at + 1, operation.type)) return false;
    if (!parse_offset(call, at + 2, operation.type, operation.offset)) return false;
    const bool changes = operation.action != Action::get;
    if (changes && !call.integer(at + 3, operation.operand)) return false;
    at += changes ? 4 : 3;
    operations.push_back(operation);
  }
  return true;
}

// The lowest `bits` bits of `value`, read as that type.
Wide truncated(Wide value, const FieldType& type) {
  const Wide range = Wide{1} << type.bits;
  const Wide low = value & (range - 1);
  return type.is_signed && low >= range / 2 ? low - range : low;
}

Wide read_field(std::string_view text, const FieldOperation& field) {
  Wide value = 0;
  for (std::uint64_t i = field.offset; i < field.end(); ++i) value = value * 2 + (bit_at(text, i) ? 1 : 0);
  return truncated(value, field.type);
}

void write_field(char* bytes, const FieldOperation& field, Wide value) {
  for (std::uint64_t i = field.end(); i-- > field.offset; value >>= 1) {
    const auto mask = static_cast<unsigned char>(0x80u >> (i & 7));
    char& byte = bytes[i >> 3];
    byte = static_cast<char>((value & 1) != 0 ? byte | mask : byte & ~mask);
  }
}

// Adjusts `value` to what the field will hold; returns false if its overflow makes the operation fail.
bool fit(Wide& value, const FieldOperation& field) {
  const Wide range = Wide{1} << field.type.bits;
  const Wide least = field.type.is_signed ? -(range / 2) : 0;
  const Wide most = least + range - 1;
  if (value >= least && value <= most) return true;
  if (field.overflow == Overflow::wrap) value = truncated(value, field.type);
  if (field.overflow == Overflow::saturate) value = value < least ? least : most;
  return field.overflow != Overflow::fail;
}

// Returns true if the field changed.
bool change_field(const Call& call, char* bytes, std::string_view text, const FieldOperation& field) {
  const Wide before = read_field(text, field);
  Wide after = before + field.operand;
  if (field.action == Action::set) {
    // As in Redis, an unsigned field takes a negative operand as the large number with the same bits.
    after = field.type.is_signed ? Wide{field.operand} : Wide{static_cast<std::uint64_t>(field.operand)};
  }
  if (!fit(after, field)) {
    call.reply.null();
    return false;
  }
  write_field(bytes, field, after);
  call.reply.integer(static_cast<std::int64_t>(field.action == Action::set ? before : after));
  return before != after;
}

void read_fields(const Call& call, const std::vector<FieldOperation>& operations) {
  const Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  const std::string_view text = record == nullptr ? std::string_view() : record->value.text().view();
  call.reply.array(operations.size());
  for (const FieldOperation& field : operations)
    call.reply.integer(static_cast<std::int64_t>(read_field(text, field)));
}

void change_fields(const Call& call, const std::vector<FieldOperation>& operations) {
  std::uint64_t end_bit = 0;
  for (const FieldOperation& field : operations) {
    if (field.action != Action::get) end_bit = std::max(end_bit, field.end());
  }
  Record* record = call.write(call[1]);
  if (!call.typed(record, Type::string)) return;
  bool changed = record == nullptr;
  if (record == nullptr) record = &call.db.insert(call[1]);
  Bytes& value = record->value.text();
  const std::size_t wanted = (end_bit + 7) / 8;
  changed |= wanted > value.size();
  char* bytes = value.grow_zeroed(wanted);
  record->value.mark(Value::Made::edited);
  call.reply.array(operations.size());
  for (const FieldOperation& field : operations) {
    if (field.action == Action::get) {
      call.reply.integer(static_cast<std::int64_t>(read_field(value.view(), field)));
    } else {
      changed |= change_field(call, bytes, value.view(), field);
    }
  }
  if (changed) call.changed(call[1]);
}

bool only_reads(const std::vector<FieldOperation>& operations) {
  return std::ranges::all_of(operations,
                             [](const FieldOperation& field) { return field.action == Action::get; });
}

void bitfield(const Call& call) {
  std::vector<FieldOperation> operations;
  if (!parse_operations(call, operations)) return;
  only_reads(operations) ? read_fields(call, operations) : change_fields(call, operations);
}

void bitfield_ro(const Call& call) {
  std::vector<FieldOperation> operations;
  if (!parse_operations(call, operations)) return;
  if (!only_reads(operations)) return call.reply.error("ERR BITFIELD_RO only supports the GET subcommand");
  read_fields(call, operations);
}

}  // namespace

std::span<const Command> bitfield_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"bitfield", -2, write | denyoom, 1, 1, 1, bitfield, "bitmap",
       "Reads and changes integers in a string."},
      {"bitfield_ro", -2, readonly | fast, 1, 1, 1, bitfield_ro, "bitmap", "Reads integers in a string."},
  };
  return commands;
}

}  // namespace weir::kv
