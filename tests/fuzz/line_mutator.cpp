#include "tests/fuzz/line_mutator.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

// A build without libFuzzer replays, and mutates nothing.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most)
    __attribute__((weak));

namespace weir::fuzz {

namespace {

using Random = std::minstd_rand;
using Lines = std::vector<std::string>;

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() / 7 % bound; }

Lines split(std::string_view text, char at) {
  Lines parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string joined(const Lines& parts, char with) {
  std::string text;
  for (const std::string& part : parts) (text += part) += with;
  return text;
}

std::string_view any_of(std::span<const std::string_view> all, Random& random) {
  return all[below(random, all.size())];
}

std::string any_number(Random& random) {
  static constexpr std::uint64_t limits[] = {
      0, 1, 2, 7, 39, 40, 63, 64, 4095, 4096, 32767, 32768, 65535, 65536, 131072, UINT32_MAX, UINT64_MAX};
  return std::to_string(below(random, 2) == 0 ? below(random, 16) : limits[below(random, std::size(limits))]);
}

void mutate_words(std::string& line, Random& random) {
  Lines words = split(line, ' ');
  if (words.empty()) return;
  const std::size_t at = below(random, words.size());
  const auto place = words.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(random, 4)) {
    case 0:
      *place = any_number(random);
      break;
    case 1:
      *place = any_of(grammar.words, random);
      break;
    case 2:
      words.emplace(place + 1, any_of(grammar.words, random));
      break;
    default:
      words.erase(place);
  }
  line = joined(words, ' ');
  if (!line.empty()) line.pop_back();
}

void mutate_once(Lines& lines, Random& random) {
  const std::size_t at = below(random, lines.size() + 1);
  const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
  const std::size_t other = below(random, lines.size());
  switch (below(random, 8)) {
    case 0:
    case 1:
    case 2:
      lines.emplace(place, any_of(grammar.lines, random));
      break;
    case 3:
      if (place != lines.end()) lines.erase(place);
      break;
    case 4:
      if (!lines.empty()) lines.insert(place, std::string(lines[other]));
      break;
    case 5:
      if (place != lines.end()) std::swap(*place, lines[other]);
      break;
    default:
      if (place != lines.end()) mutate_words(*place, random);
  }
}

std::size_t put(const std::string& text, std::uint8_t* to, std::size_t most) {
  const std::size_t size = std::min(text.size(), most);
  std::copy_n(text.data(), size, to);
  return size;
}

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace
}  // namespace weir::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  using namespace weir::fuzz;
  Random random(seed + 1);
  random.discard(3);
  if (below(random, 10) == 0 && LLVMFuzzerMutate != nullptr) return LLVMFuzzerMutate(data, size, most);
  Lines lines = split(text_of({data, size}), '\n');
  for (std::size_t i = 0, times = 1 + below(random, 4); i < times; ++i) mutate_once(lines, random);
  return put(joined(lines, '\n'), data, most);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                                 const std::uint8_t* other, std::size_t other_size,
                                                 std::uint8_t* to, std::size_t most, unsigned seed) {
  using namespace weir::fuzz;
  Random random(seed + 1);
  random.discard(3);
  Lines lines = split(text_of({one, one_size}), '\n');
  const Lines others = split(text_of({other, other_size}), '\n');
  const std::size_t at = below(random, lines.size() + 1), from = below(random, others.size()),
                    count = 1 + below(random, others.size() - std::min(from, others.size()));
  const auto begin = others.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(count, others.size() - from));
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), begin, end);
  return put(joined(lines, '\n'), to, most);
}
