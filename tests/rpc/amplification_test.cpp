// How much memory N bytes from a stranger may use: a seeded search for arguments that take more memory than
// they are charged for, and for those that take longest. Replaces operator new to count the heap.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <list>
#include <map>
#include <new>
#include <random>
#include <set>
#include <unordered_map>

#include "rpc/codec/codec.hpp"

namespace {
std::size_t live = 0, peak = 0;
void* counted(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  live += malloc_usable_size(memory) + 16;
  peak = std::max(peak, live);
  return memory;
}
void uncounted(void* memory) {
  if (memory == nullptr) return;
  live -= malloc_usable_size(memory) + 16;
  std::free(memory);
}
}  // namespace
void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept { uncounted(memory); }

namespace weir::rpc {
namespace {

struct Wide {
  std::string a, b, c, d, e, f, g, h;
  std::optional<std::string> i;
  std::variant<int, std::string, std::vector<int>> j;
};
struct Tree {
  std::string name;
  std::vector<Tree> children;
};
struct Deep {
  std::deque<int> some;
  std::map<int, std::list<std::string>> more;
};

// One value of any kind, small ones most.
void append_value(MsgpackWriter& to, std::mt19937_64& random, int depth) {
  const auto upto = [&](std::uint64_t most) { return random() % (most + 1); };
  const std::size_t many = depth > 3 ? upto(3) : upto(4) == 0 ? upto(400) : upto(6);
  switch (upto(8)) {
    case 0:
      return to.nil();
    case 1:
      return to.boolean(true);
    case 2:
      return to.unsigned_integer(random() >> upto(63));
    case 3:
      return to.real64(0.5);
    case 4:
      return to.text(std::string(upto(6) == 0 ? upto(300) : upto(20), 't'));
    case 5:
      return to.binary({});
    case 6:
      to.map(many);
      for (std::size_t i = 0; i < 2 * many; ++i) append_value(to, random, depth + 1);
      return;
    default:
      to.array(many);
      for (std::size_t i = 0; i < many; ++i) append_value(to, random, depth + 1);
  }
}
// All elements alike, so that much of it has one type, which is what amplifies.
void append_alike(MsgpackWriter& to, std::mt19937_64& random, std::size_t bytes) {
  const std::uint64_t kind = random() % 6;
  kind == 5 ? to.map(bytes / 4) : to.array(bytes / 2);
  for (std::size_t i = 0; i < bytes / 2; ++i) {
    if (kind == 0) to.array(0);
    if (kind == 1) to.text("");
    if (kind == 2) to.unsigned_integer(i % 128);
    if (kind == 3) to.nil();
    if (kind == 4) to.map(0);
    if (kind == 5) to.unsigned_integer(i);
  }
}

struct Worst {
  double times_the_bytes = 0;
  double us = 0;
};

template <class T>
void read_and_measure(std::span<const std::byte> body, std::size_t most, Worst& worst) {
  DecodeRoom room{most};
  const std::size_t before = live;
  peak = live;
  timespec begin{}, end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  {
    T value{};
    static_cast<void>(MessagePack::read(body, value, room));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  }
  const std::size_t took = peak - before;
  // Also counted: malloc's rounding, a string's own block, and the text of an error.
  ASSERT_LE(took, 2 * room.used + body.size() + 16'384) << __PRETTY_FUNCTION__;
  ASSERT_LE(took, most + most / 2 + body.size() + 16'384) << __PRETTY_FUNCTION__;
  worst.times_the_bytes =
      std::max(worst.times_the_bytes, static_cast<double>(took) / static_cast<double>(body.size() + 1));
  worst.us = std::max(worst.us, static_cast<double>(end.tv_sec - begin.tv_sec) * 1e6 +
                                    static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e3);
}

TEST(Amplification, is_charged_whatever_the_arguments) {
  const char* const given = std::getenv("WEIR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20251;
  constexpr std::size_t most = 1 << 20;
  std::mt19937_64 random(seed);
  Worst worst;
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE("WEIR_SEED=" + std::to_string(seed) + ", round " + std::to_string(i));
    Bytes body;
    MsgpackWriter writer(body);
    i % 2 == 0 ? append_alike(writer, random, 2 + random() % 20'000) : append_value(writer, random, 0);
    const std::span<const std::byte> all = body.span();
    read_and_measure<std::vector<Wide>>(all, most, worst);
    read_and_measure<std::vector<std::vector<std::string>>>(all, most, worst);
    read_and_measure<std::vector<Tree>>(all, most, worst);
    read_and_measure<std::vector<Deep>>(all, most, worst);
    read_and_measure<std::list<std::string>>(all, most, worst);
    read_and_measure<std::deque<int>>(all, most, worst);
    read_and_measure<std::set<int>>(all, most, worst);
    read_and_measure<std::map<int, std::string>>(all, most, worst);
    read_and_measure<std::unordered_map<int, int>>(all, most, worst);
    read_and_measure<std::vector<std::optional<Wide>>>(all, most, worst);
    read_and_measure<std::vector<std::variant<int, Wide>>>(all, most, worst);
    read_and_measure<std::vector<bool>>(all, most, worst);
    if (HasFatalFailure()) return;
  }
  std::printf(
      "seed %llu: at worst %.0f bytes of memory for a byte, %.0f us for a request with room for %zu KiB\n",
      static_cast<unsigned long long>(seed), worst.times_the_bytes, worst.us, most >> 10);
}

}  // namespace
}  // namespace weir::rpc
