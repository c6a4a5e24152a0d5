// Uses the driver in fake_cuda.cpp, which this program is linked with, so the loader finds it first.
#include "tensor/memory/gpu.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/memory/gpu_staging.hpp"

extern "C" std::size_t fake_cuda_pinned_bytes();

namespace weir::tensor {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

// The fake's "GPU memory" for a host address.
void* gpu_address(void* host) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(host) + (std::uint64_t{1} << 60));
}

Gpu& gpu() {
  static Gpu* const opened = *Gpu::open(0);
  return *opened;
}

TEST(Gpu, copies_are_done_when_wait_returns) {
  std::array<std::byte, 64> there{}, here{};
  std::memset(there.data(), 7, there.size());
  ASSERT_TRUE(gpu().to_host(here, gpu_address(there.data())));
  ASSERT_TRUE(gpu().wait());
  EXPECT_EQ(here, there);
  std::memset(here.data(), 9, here.size());
  ASSERT_TRUE(gpu().to_gpu(gpu_address(there.data()), here));
  ASSERT_TRUE(gpu().wait());
  EXPECT_EQ(here, there);
}

TEST(Gpu, is_opened_once) { EXPECT_EQ(*Gpu::open(0), &gpu()); }

TEST(Gpu, that_is_not_there_is_an_error) {
  const Result<Gpu*> opened = Gpu::open(7);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::no_gpu);
  EXPECT_NE(opened.error().what.find("GPU 7"), std::string::npos);
}

TEST(Gpu, an_address_that_is_not_its_own_is_an_error) {
  std::array<std::byte, 64> here{};
  const Result<void> begun = gpu().to_host(here, here.data());
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, Errc::no_gpu);
}

TEST(GpuStaging, what_came_back_is_used_again) {
  GpuStaging staging({});
  std::byte* const first = *staging.take(gpu(), 3 * mib);
  staging.give_back(first);
  EXPECT_EQ(*staging.take(gpu(), 3 * mib), first);
  EXPECT_NE(*staging.take(gpu(), 3 * mib), first);
}

TEST(GpuStaging, no_more_is_kept_than_its_limit) {
  GpuStaging staging({.keep_bytes = 10 * mib, .pinned_bytes = 100 * mib});
  const std::size_t before = fake_cuda_pinned_bytes();
  std::array<std::byte*, 8> taken{};
  for (auto& each : taken) each = *staging.take(gpu(), 3 * mib);
  EXPECT_GE(fake_cuda_pinned_bytes() - before, 24 * mib);
  for (auto* each : taken) staging.give_back(each);
  EXPECT_LE(staging.spare_bytes(), 10 * mib);
  EXPECT_GE(staging.spare_bytes(), 6 * mib);
  EXPECT_EQ(staging.pinned_bytes(), staging.spare_bytes());
  EXPECT_EQ(fake_cuda_pinned_bytes() - before, staging.pinned_bytes());
}

TEST(GpuStaging, beyond_its_limit_memory_is_not_pinned_but_there) {
  GpuStaging staging({.keep_bytes = 100 * mib, .pinned_bytes = 7 * mib});
  std::byte* const pinned = *staging.take(gpu(), 3 * mib);
  std::byte* const also = *staging.take(gpu(), 3 * mib);
  const std::size_t both = staging.pinned_bytes();
  std::byte* const not_pinned = *staging.take(gpu(), 3 * mib);
  EXPECT_EQ(staging.pinned_bytes(), both);
  std::memset(not_pinned, 1, 3 * mib);
  for (auto* each : {not_pinned, pinned, also}) staging.give_back(each);
}

TEST(GpuStaging, what_waits_makes_room_for_another_size) {
  GpuStaging staging({.keep_bytes = 100 * mib, .pinned_bytes = 7 * mib});
  staging.give_back(*staging.take(gpu(), 5 * mib));
  std::byte* const other = *staging.take(gpu(), 3 * mib);
  EXPECT_EQ(staging.spare_bytes(), 0);
  EXPECT_GE(staging.pinned_bytes(), 3 * mib);
  EXPECT_LT(staging.pinned_bytes(), 5 * mib);
  staging.give_back(other);
}

TEST(GpuStaging, memory_that_it_never_gave_is_ignored) {
  GpuStaging staging({});
  std::byte mine{};
  staging.give_back(&mine);
  EXPECT_EQ(staging.spare_bytes(), 0);
}

}  // namespace
}  // namespace weir::tensor
