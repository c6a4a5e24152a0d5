// Strings that claim to be HyperLogLogs: clients store them, and RESTORE and snapshots load them. All
// operations must agree on whether one is whole, and a whole one must stay whole.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kv/store/hyperloglog.hpp"

namespace {

using namespace weir::kv::hyperloglog;

void require(bool holds) {
  if (!holds) std::abort();
}

bool whole(std::string_view sketch, Registers& registers) { return registers.merge(sketch); }

void require_same(const Registers& a, const Registers& b) {
  for (std::size_t i = 0; i < register_count; ++i) require(a[i] == b[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string sketch(reinterpret_cast<const char*>(data), size);
  if (!looks_valid(sketch)) return 0;
  Registers registers;
  const bool is_whole = whole(sketch, registers);
  registers.count();
  if (!is_dense(sketch)) describe(sketch);

  std::string dense = sketch;
  require(make_dense(dense) == is_whole);
  if (is_whole) {
    require(dense.size() == dense_bytes);
    Registers from_dense;
    require(whole(dense, from_dense));
    require_same(registers, from_dense);
  }

  // Added to both, elements change both alike.
  constexpr std::size_t most_sparse_bytes = 200;
  for (const std::uint64_t element : {size, size * 7 + 1, size * 31 + 2, size * 127 + 3}) {
    const Observation seen = observe(std::to_string(element));
    const Outcome outcome = add(sketch, seen, most_sparse_bytes);
    if (!is_whole) continue;
    require(outcome != Outcome::corrupted);
    require(add_to_dense(dense.data(), seen) == (outcome == Outcome::changed));
    forget_count(sketch.data());
    require(!known_count(sketch));
  }
  if (!is_whole) return 0;
  Registers after;
  Registers dense_after;
  require(whole(sketch, after) && whole(dense, dense_after));
  require_same(after, dense_after);
  // Registers higher than any element makes them stand for no number, of which Redis makes the lowest one: it
  // reads as outdated.
  const std::uint64_t count = after.count();
  note_count(sketch.data(), count);
  require(known_count(sketch) == count || count >> 63 != 0);
  return 0;
}
