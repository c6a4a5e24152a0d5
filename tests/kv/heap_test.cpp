// The count of the heap's used bytes; it works with the sanitizers' own counts, too.
#include "kv/text/heap.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kv/text/bytes.hpp"

namespace weir::kv::testing {
namespace {

constexpr std::size_t piece = 1 << 20;
// What the test framework and the heap's bookkeeping may add.
constexpr std::size_t slack = 16 << 10;

struct Kind {
  const char* name;
  std::shared_ptr<void> (*make)();
};

class Heap : public ::testing::TestWithParam<Kind> {};

TEST_P(Heap, counts_what_is_held_until_it_is_freed) {
  GetParam().make();  // allocates what is allocated only once
  const std::size_t before = used_memory();
  std::shared_ptr<void> held = GetParam().make();
  EXPECT_GE(used_memory(), before + piece);
  EXPECT_LE(used_memory(), before + piece + slack);
  held.reset();
  EXPECT_LE(used_memory(), before + slack);
}

struct alignas(256) Aligned {
  char bytes[piece];
};

INSTANTIATE_TEST_SUITE_P(
    Of, Heap,
    ::testing::Values(
        Kind{"containers", [] { return std::shared_ptr<void>(std::make_shared<std::vector<char>>(piece)); }},
        Kind{"arrays", [] { return std::shared_ptr<void>(std::shared_ptr<char[]>(new char[piece])); }},
        Kind{"aligned_objects",
             [] {
               return std::shared_ptr<void>(new Aligned, [](void* at) { delete static_cast<Aligned*>(at); });
             }},
        Kind{"aligned_arrays",
             [] {
               return std::shared_ptr<void>(new Aligned[1],
                                            [](void* at) { delete[] static_cast<Aligned*>(at); });
             }},
        Kind{"memory_that_may_be_refused",
             [] {
               return std::shared_ptr<void>(::operator new(piece, std::nothrow),
                                            [](void* at) { ::operator delete(at); });
             }},
        Kind{"aligned_memory_that_may_be_refused",
             [] {
               constexpr std::align_val_t line{64};
               return std::shared_ptr<void>(::operator new(piece, line, std::nothrow),
                                            [](void* at) { ::operator delete(at, piece, line); });
             }},
        Kind{"blobs",
             [] {
               return std::shared_ptr<void>(Blob::make(0, piece),
                                            [](void* at) { static_cast<Blob*>(at)->drop(); });
             }},
        Kind{"blobs_that_grew",
             [] {
               return std::shared_ptr<void>(Blob::with_capacity(Blob::make(0, 100), piece),
                                            [](void* at) { static_cast<Blob*>(at)->drop(); });
             }},
        Kind{"zeroed_memory", [] { return std::shared_ptr<void>(allocate_zeroed(piece), free_zeroed); }}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(HeapOfThreads, counts_what_another_thread_frees) {
  const std::size_t before = used_memory();
  auto held = std::make_unique<std::vector<char>>(piece);
  std::thread([&] { held.reset(); }).join();
  EXPECT_LE(used_memory(), before + slack);
}

TEST(HeapOfThreads, counts_what_a_thread_that_has_ended_left) {
  const std::size_t before = used_memory();
  std::unique_ptr<std::vector<char>> held;
  std::thread([&] { held = std::make_unique<std::vector<char>>(piece); }).join();
  EXPECT_GE(used_memory(), before + piece);
  held.reset();
  EXPECT_LE(used_memory(), before + slack);
}

// More values than have a count of their own.
TEST(HeapOfThreads, counts_those_of_a_hundred) {
  const std::size_t before = used_memory();
  std::vector<std::unique_ptr<char[]>> held(100);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : held) threads.emplace_back([&mine] { mine = std::make_unique<char[]>(piece); });
  }
  EXPECT_GE(used_memory(), before + held.size() * piece);
  held.clear();
  EXPECT_LE(used_memory(), before + 4 * slack);
}

}  // namespace
}  // namespace weir::kv::testing
