#include "kv/store/hyperloglog.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace weir::kv::hyperloglog {

namespace {

constexpr unsigned index_bits = 14;
constexpr unsigned value_bits = 6;
constexpr unsigned most_value = 64 - index_bits + 1;
constexpr std::string_view magic = "HYLL";
constexpr std::size_t encoding_at = 4;
constexpr std::size_t count_at = 8;
constexpr char dense_encoding = 0;
constexpr char sparse_encoding = 1;

// The most that a run can say.
constexpr unsigned most_short_zeros = 64;
constexpr unsigned most_sparse_value = 32;
constexpr unsigned most_equal = 4;

unsigned byte_of(char c) { return static_cast<unsigned char>(c); }

// MurmurHash2 for 64 bits, with Redis's seed.
std::uint64_t hash_of(std::string_view element) {
  constexpr std::uint64_t factor = 0xc6a4a7935bd1e995u;
  constexpr unsigned shift = 47;
  std::uint64_t hash = 0xadc83b19u ^ (element.size() * factor);
  while (element.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, element.data(), sizeof word);
    word *= factor;
    word ^= word >> shift;
    hash = (hash ^ word * factor) * factor;
    element.remove_prefix(8);
  }
  if (!element.empty()) {
    std::uint64_t rest = 0;
    std::memcpy(&rest, element.data(), element.size());
    hash = (hash ^ rest) * factor;
  }
  hash ^= hash >> shift;
  hash *= factor;
  return hash ^ hash >> shift;
}

// A dense register's six bits may lie in two bytes; behind the last register no second one is touched.
struct DensePlace {
  std::size_t byte;
  unsigned bit;
  explicit DensePlace(std::size_t index)
      : byte(header_bytes + index * value_bits / 8), bit(static_cast<unsigned>(index * value_bits % 8)) {}
  bool in_two() const { return bit > 8 - value_bits; }
};

std::uint8_t dense_value(const char* sketch, std::size_t index) {
  const DensePlace place(index);
  unsigned value = byte_of(sketch[place.byte]) >> place.bit;
  if (place.in_two()) value |= byte_of(sketch[place.byte + 1]) << (8 - place.bit);
  return static_cast<std::uint8_t>(value & ((1u << value_bits) - 1));
}

void set_dense_value(char* sketch, std::size_t index, std::uint8_t value) {
  constexpr unsigned mask = (1u << value_bits) - 1;
  const DensePlace place(index);
  const auto put = [&](std::size_t at, unsigned cleared, unsigned bits) {
    sketch[at] = static_cast<char>((byte_of(sketch[at]) & ~cleared) | bits);
  };
  put(place.byte, mask << place.bit, unsigned{value} << place.bit);
  if (place.in_two()) put(place.byte + 1, mask >> (8 - place.bit), unsigned{value} >> (8 - place.bit));
}

// One run of a sparse sketch.
struct Run {
  unsigned length = 0;  // registers
  std::uint8_t value = 0;
  std::size_t bytes = 1;

  bool long_zeros() const { return bytes == 2; }
};

Run zeros(unsigned length) { return {length, 0, length > most_short_zeros ? 2u : 1u}; }
Run equal(std::uint8_t value, unsigned length) { return {length, value, 1}; }

// Nothing: the second byte is missing.
std::optional<Run> run_at(std::string_view sketch, std::size_t at) {
  const unsigned first = byte_of(sketch[at]);
  if ((first & 0x80) != 0) return equal(static_cast<std::uint8_t>((first >> 2 & 0x1f) + 1), (first & 3) + 1);
  if ((first & 0x40) == 0) return Run{(first & 0x3f) + 1, 0, 1};
  if (at + 1 >= sketch.size()) return std::nullopt;
  return Run{((first & 0x3f) << 8 | byte_of(sketch[at + 1])) + 1, 0, 2};
}

void append_run(std::string& to, Run run) {
  if (run.length == 0) return;
  const unsigned n = run.length - 1;
  if (run.value != 0) {
    to += static_cast<char>(0x80 | (run.value - 1u) << 2 | n);
  } else if (run.long_zeros()) {
    to += static_cast<char>(0x40 | n >> 8);
    to += static_cast<char>(n & 0xff);
  } else {
    to += static_cast<char>(n);
  }
}

// visit(Run, first register); false: the runs are not those of all registers.
template <class Visit>
bool for_each_run(std::string_view sketch, Visit visit) {
  std::size_t index = 0;
  for (std::size_t at = header_bytes; at < sketch.size();) {
    const auto run = run_at(sketch, at);
    if (!run || index + run->length > register_count) return false;
    visit(*run, index);
    index += run->length;
    at += run->bytes;
  }
  return index == register_count;
}

// Runs of the same value that are next to each other become one, from `at` on, as far as a change reaches.
void join_runs(std::string& sketch, std::size_t at) {
  constexpr int reach = 5;
  for (int looked = 0; looked < reach && at < sketch.size(); ++looked) {
    const auto run = run_at(sketch, at);
    if (!run) return;
    if (run->value != 0 && at + 1 < sketch.size()) {
      const auto following = run_at(sketch, at + 1);
      if (following && following->value == run->value && run->length + following->length <= most_equal) {
        std::string joined;
        append_run(joined, equal(run->value, run->length + following->length));
        sketch.replace(at, 2, joined);
        continue;
      }
    }
    at += run->bytes;
  }
}

Outcome make_dense_and_add(std::string& sketch, Observation seen) {
  if (!make_dense(sketch)) return Outcome::corrupted;
  return add_to_dense(sketch.data(), seen) ? Outcome::changed : Outcome::unchanged;
}

Outcome add_to_sparse(std::string& sketch, Observation seen, std::size_t most_bytes) {
  if (seen.value > most_sparse_value) return make_dense_and_add(sketch, seen);
  std::size_t at = header_bytes;
  std::size_t before = header_bytes;
  std::size_t first = 0;
  std::optional<Run> run;
  for (;;) {
    if (at >= sketch.size() || !(run = run_at(sketch, at))) return Outcome::corrupted;
    if (seen.index < first + run->length) break;
    first += run->length;
    before = at;
    at += run->bytes;
  }
  if (run->value >= seen.value) return Outcome::unchanged;
  // What was one run becomes up to three.
  const auto in_front = static_cast<unsigned>(seen.index - first);
  const unsigned behind = run->length - in_front - 1;
  std::string runs;
  append_run(runs, run->value == 0 ? zeros(in_front) : equal(run->value, in_front));
  append_run(runs, equal(seen.value, 1));
  append_run(runs, run->value == 0 ? zeros(behind) : equal(run->value, behind));
  const std::size_t size = sketch.size() - run->bytes + runs.size();
  if (size > sketch.size() && size > most_bytes) return make_dense_and_add(sketch, seen);
  sketch.replace(at, run->bytes, runs);
  join_runs(sketch, before);
  return Outcome::changed;
}

double sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double sum = x;
  double before = 0;
  double weight = 1;
  do {
    x *= x;
    before = sum;
    sum += x * weight;
    weight += weight;
  } while (sum != before);
  return sum;
}

double tau(double x) {
  if (x == 0 || x == 1) return 0;
  double sum = 1 - x;
  double before = 0;
  double weight = 1;
  do {
    x = std::sqrt(x);
    before = sum;
    weight *= 0.5;
    sum -= std::pow(1 - x, 2) * weight;
  } while (sum != before);
  return sum / 3;
}

}  // namespace

Observation observe(std::string_view element) {
  const std::uint64_t hash = hash_of(element);
  const std::uint64_t rest = hash >> index_bits | std::uint64_t{1} << (64 - index_bits);
  return {static_cast<std::uint32_t>(hash & (register_count - 1)),
          static_cast<std::uint8_t>(std::countr_zero(rest) + 1)};
}

bool is_dense(std::string_view sketch) { return sketch[encoding_at] == dense_encoding; }

bool looks_valid(std::string_view sketch) {
  if (sketch.size() < header_bytes || !sketch.starts_with(magic)) return false;
  return is_dense(sketch) ? sketch.size() == dense_bytes : sketch[encoding_at] == sparse_encoding;
}

std::string empty_sketch() {
  std::string sketch(magic);
  sketch.resize(header_bytes);
  sketch[encoding_at] = sparse_encoding;
  append_run(sketch, zeros(register_count));
  return sketch;
}

bool add_to_dense(char* sketch, Observation seen) {
  if (dense_value(sketch, seen.index) >= seen.value) return false;
  set_dense_value(sketch, seen.index, seen.value);
  return true;
}

Outcome add(std::string& sketch, Observation seen, std::size_t most_sparse_bytes) {
  if (!is_dense(sketch)) return add_to_sparse(sketch, seen, most_sparse_bytes);
  return add_to_dense(sketch.data(), seen) ? Outcome::changed : Outcome::unchanged;
}

bool make_dense(std::string& sketch) {
  if (is_dense(sketch)) return true;
  std::string dense = sketch.substr(0, header_bytes);
  dense.resize(dense_bytes);
  dense[encoding_at] = dense_encoding;
  const bool valid = for_each_run(sketch, [&](Run run, std::size_t first) {
    if (run.value == 0) return;
    for (std::size_t i = 0; i < run.length; ++i) set_dense_value(dense.data(), first + i, run.value);
  });
  if (valid) sketch = std::move(dense);
  return valid;
}

std::optional<std::uint64_t> known_count(std::string_view sketch) {
  if ((byte_of(sketch[header_bytes - 1]) & 0x80) != 0) return std::nullopt;
  std::uint64_t count = 0;
  std::memcpy(&count, sketch.data() + count_at, sizeof count);
  return count;
}
void note_count(char* sketch, std::uint64_t count) { std::memcpy(sketch + count_at, &count, sizeof count); }
void forget_count(char* sketch) {
  sketch[header_bytes - 1] = static_cast<char>(byte_of(sketch[header_bytes - 1]) | 0x80);
}

bool Registers::merge(std::string_view sketch) {
  if (is_dense(sketch)) {
    for (std::size_t i = 0; i < register_count; ++i) raise(i, dense_value(sketch.data(), i));
    return true;
  }
  return for_each_run(sketch, [&](Run run, std::size_t first) {
    for (std::size_t i = 0; i < run.length && run.value != 0; ++i) raise(first + i, run.value);
  });
}

// As in "New cardinality estimation algorithms for HyperLogLog sketches" (Otmar Ertl, arXiv:1702.01284).
std::uint64_t Registers::count() const {
  std::array<std::uint32_t, 1u << value_bits> having{};  // how many registers have a value
  for (const std::uint8_t value : values_) ++having[value];
  constexpr double m = register_count;
  constexpr double alpha = 0.721347520444481703680;  // 0.5 / ln 2
  double z = m * tau((m - having[most_value]) / m);
  for (unsigned value = most_value - 1; value >= 1; --value) {
    z += having[value];
    z *= 0.5;
  }
  z += m * sigma(having[0] / m);
  return static_cast<std::uint64_t>(std::llroundl(static_cast<long double>(alpha * m * m / z)));
}

std::string describe(std::string_view sparse) {
  std::string text;
  std::size_t registers = 0;
  for (std::size_t at = header_bytes; at < sparse.size() && registers < register_count;) {
    const auto run = run_at(sparse, at);
    if (!run) break;
    registers += run->length;
    if (!text.empty()) text += ' ';
    if (run->value != 0) {
      text += "v:" + std::to_string(run->value) + ',' + std::to_string(run->length);
    } else {
      text += (run->long_zeros() ? "Z:" : "z:") + std::to_string(run->length);
    }
    at += run->bytes;
  }
  return text;
}

}  // namespace weir::kv::hyperloglog
