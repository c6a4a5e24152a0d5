// HyperLogLog: strings that count distinct elements (kv/store/hyperloglog.hpp).
#include <algorithm>
#include <cmath>
#include <string>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/store/hyperloglog.hpp"

namespace weir::kv {

namespace {

namespace hll = hyperloglog;
using hll::Outcome;

void reply_corrupted(const Call& call) { call.reply.error("INVALIDOBJ Corrupted HLL object detected"); }

// Replies with an error if the record holds something else.
bool is_sketch(const Call& call, const Record* record) {
  if (!call.typed(record, Type::string)) return false;
  if (hll::looks_valid(record->value.text().view())) return true;
  call.reply.error("WRONGTYPE Key is not a valid HyperLogLog string value.");
  return false;
}

std::size_t most_sparse_bytes(const Call& call) {
  return static_cast<std::size_t>(call.server.settings.hll_sparse_max_bytes);
}

// The bytes of a dense sketch, for changes in place.
char* bytes_of(Record& record) {
  Bytes& text = record.value.text();
  return text.grow_zeroed(text.size());
}

void keep(Record& record, std::string_view sketch) {
  record.value.assign(sketch);
  record.value.mark(Value::Made::edited);
}

// Returns how many registers changed; nullopt: the sketch is corrupted and stays unchanged.
std::optional<std::size_t> add_all(const Call& call, Record& record) {
  const Arguments elements = call.arguments.subspan(2);
  std::size_t changed = 0;
  if (hll::is_dense(record.value.text().view())) {
    char* sketch = bytes_of(record);
    for (const Argument& element : elements)
      changed += hll::add_to_dense(sketch, hll::observe(element.text)) ? 1 : 0;
    return changed;
  }
  std::string sketch(record.value.text().view());
  for (const Argument& element : elements) {
    const Outcome outcome = hll::add(sketch, hll::observe(element.text), most_sparse_bytes(call));
    if (outcome == Outcome::corrupted) return std::nullopt;
    changed += outcome == Outcome::changed ? 1 : 0;
  }
  if (changed != 0) keep(record, sketch);
  return changed;
}

void pfadd(const Call& call) {
  Record* record = call.write(call[1]);
  const bool fresh = record == nullptr;
  if (fresh) {
    record = &call.db.insert(call[1]);
    keep(*record, hll::empty_sketch());
  } else if (!is_sketch(call, record)) {
    return;
  }
  const auto changed = add_all(call, *record);
  if (!changed) return reply_corrupted(call);
  const bool updated = fresh || *changed != 0;
  if (updated) {
    hll::forget_count(bytes_of(*record));
    call.changed(call[1]);
  }
  call.reply.integer(updated ? 1 : 0);
}

// Merges all keys from argument `at` on; on failure replies with the error. `dense`: whether any of them is.
bool merge_all(const Call& call, hll::Registers& registers, bool& dense) {
  for (const Argument& key : call.arguments.subspan(1)) {
    const Record* record = call.read(key.text);
    if (record == nullptr) continue;
    if (!is_sketch(call, record)) return false;
    const std::string_view sketch = record->value.text().view();
    dense |= hll::is_dense(sketch);
    if (!registers.merge(sketch)) return reply_corrupted(call), false;
  }
  return true;
}

void pfcount(const Call& call) {
  hll::Registers registers;
  if (call.count() > 2) {
    bool dense = false;
    if (merge_all(call, registers, dense)) call.reply.integer(static_cast<std::int64_t>(registers.count()));
    return;
  }
  Record* record = call.read(call[1]);
  if (record == nullptr) return call.reply.integer(0);
  if (!is_sketch(call, record)) return;
  const std::string_view sketch = record->value.text().view();
  auto count = hll::known_count(sketch);
  if (!count) {
    if (!registers.merge(sketch)) return reply_corrupted(call);
    count = registers.count();
    hll::note_count(bytes_of(*record), *count);
    record->value.mark(Value::Made::edited);
    call.changed(call[1]);
  }
  call.reply.integer(static_cast<std::int64_t>(*count));
}

void pfmerge(const Call& call) {
  hll::Registers registers;
  bool dense = false;
  if (!merge_all(call, registers, dense)) return;
  Record* record = call.write(call[1]);
  std::string sketch = record == nullptr ? hll::empty_sketch() : std::string(record->value.text().view());
  if (dense && !hll::make_dense(sketch)) return reply_corrupted(call);
  for (std::uint32_t i = 0; i < hll::register_count; ++i) {
    if (registers[i] != 0) hll::add(sketch, {i, registers[i]}, most_sparse_bytes(call));
  }
  hll::forget_count(sketch.data());
  keep(record == nullptr ? call.db.insert(call[1]) : *record, sketch);
  call.changed(call[1]);
  call.reply.ok();
}

// Returns true if the sketch became dense.
bool turn_dense(const Call& call, Record& record) {
  std::string sketch(record.value.text().view());
  if (hll::is_dense(sketch) || !hll::make_dense(sketch)) return false;
  keep(record, sketch);
  call.changed(call[2]);
  return true;
}

void reply_registers(const Call& call, Record& record) {
  hll::Registers registers;
  if (!registers.merge(record.value.text().view())) return reply_corrupted(call);
  turn_dense(call, record);
  call.reply.array(hll::register_count);
  for (std::size_t i = 0; i < hll::register_count; ++i) call.reply.integer(registers[i]);
}

void pfdebug(const Call& call) {
  Record* record = call.write(call[2]);
  if (record == nullptr) return call.reply.error("ERR The specified key does not exist");
  if (!is_sketch(call, record)) return;
  const std::string_view sketch = record->value.text().view();
  const bool dense = hll::is_dense(sketch);
  if (is_word(call[1], "GETREG")) {
    reply_registers(call, *record);
  } else if (is_word(call[1], "DECODE")) {
    if (dense) return call.reply.error("ERR HLL encoding is not sparse");
    call.reply.bulk(hll::describe(sketch));
  } else if (is_word(call[1], "ENCODING")) {
    call.reply.simple(dense ? "dense" : "sparse");
  } else if (is_word(call[1], "TODENSE")) {
    if (dense) return call.reply.integer(0);
    if (!turn_dense(call, *record)) return reply_corrupted(call);
    call.reply.integer(1);
  } else {
    call.reply.error("ERR Unknown PFDEBUG subcommand '" + std::string(up_to_zero(call[1])) + "'");
  }
}

// Adds elements to a sketch in both encodings and checks the counts.
void pfselftest(const Call& call) {
  std::string dense = hll::empty_sketch();
  hll::make_dense(dense);
  std::string sparse = hll::empty_sketch();
  const std::uint64_t seed = call.server.random();
  constexpr std::uint64_t most = 100'000;
  std::uint64_t checked = 1;
  for (std::uint64_t i = 1; i <= most; ++i) {
    const std::string element = std::to_string(i ^ seed);
    hll::add_to_dense(dense.data(), hll::observe(element));
    hll::add(sparse, hll::observe(element), most_sparse_bytes(call));
    if (i != checked) continue;
    checked *= 10;
    hll::Registers from_dense;
    hll::Registers from_sparse;
    if (!from_dense.merge(dense) || !from_sparse.merge(sparse) || from_dense.count() != from_sparse.count()) {
      return call.reply.error("ERR TESTFAILED dense/sparse disagree");
    }
    constexpr double standard_error = 1.04 / 128;
    const double error = std::abs(static_cast<double>(from_dense.count()) - static_cast<double>(i));
    if (error > std::max(6 * standard_error * static_cast<double>(i), 1.0)) {
      return call.reply.error("ERR TESTFAILED Too big error. card:" + std::to_string(i));
    }
  }
  call.reply.ok();
}

}  // namespace

std::span<const Command> hyperloglog_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"pfadd", -2, write | denyoom | fast, 1, 1, 1, pfadd, "hyperloglog",
       "Adds elements to what counts different ones."},
      {"pfcount", -2, readonly | may_replicate, 1, -1, 1, pfcount, "hyperloglog",
       "Returns about how many different elements were added."},
      {"pfmerge", -2, write | denyoom, 1, -1, 1, pfmerge, "hyperloglog", "Puts several counts into one."},
      {"pfdebug", 3, write | denyoom | admin, 2, 2, 1, pfdebug, "hyperloglog", "Looks into a count."},
      {"pfselftest", 1, admin, 0, 0, 0, pfselftest, "hyperloglog", "Tests counting."},
  };
  return commands;
}

}  // namespace weir::kv
