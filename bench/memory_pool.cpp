// The benefit and the cost of the registered pool's water-mark and of its hard cap.
//
// Load comes in bursts: blocks are taken, registered, written to and returned; between two bursts the pool is
// trimmed as by an engine's tick. With the water-mark the slabs of one burst serve the next. Without it they
// are unmapped in between, so every burst maps, registers and faults them in again. With a cap below the need
// of a burst the rest is refused (Errc::memory_limit); the program measures the time of a refusal.
//
// Medians of --repeat bursts. Usage: memory_pool_bench [--repeat N]
#include "rdma/device/memory_pool.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "bench/engine.hpp"

namespace {

namespace rdma = weir::rdma;
using Clock = std::chrono::steady_clock;

constexpr std::size_t mib = std::size_t{1} << 20;

struct Burst {
  double us = 0;
  std::size_t taken = 0, refused = 0;
};

// Takes `count` blocks, asks for their keys and writes all of them.
Burst burst(rdma::MemoryPool& pool, std::size_t count, std::size_t bytes) {
  std::vector<rdma::MemoryPool::Block> blocks;
  blocks.reserve(count);
  Burst done;
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    auto block = pool.take(bytes);
    if (!block || !block->lkey()) {
      ++done.refused;
      continue;
    }
    std::memset(block->bytes().data(), static_cast<int>(i), block->bytes().size());
    blocks.push_back(std::move(*block));
  }
  done.us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  done.taken = blocks.size();
  return done;
}

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

void row(const rdma::ProtectionDomain& pd, const char* name, rdma::MemoryPoolOptions options,
         std::size_t bytes, int repeat) {
  constexpr std::size_t wanted = 32 * mib;
  rdma::MemoryPool pool(pd, options);
  std::vector<double> us;
  Burst last;
  std::size_t most = 0;
  for (int i = 0; i <= repeat; ++i) {
    last = burst(pool, wanted / bytes, bytes);
    most = std::max(most, pool.stats().slab_bytes);
    if (i > 0) us.push_back(last.us);  // the first burst finds an empty pool in each row
    // Blocks that stayed free between two trims are released.
    pool.trim();
    pool.trim();
  }
  fmt::print("| {} | {} KiB | {} | {} | {:.0f} | {} | {} |\n", name, bytes >> 10, last.taken, last.refused,
             median(us), most / mib, pool.stats().slab_bytes / mib);
}

}  // namespace

int main(int argc, char** argv) {
  int repeat = 15;
  CLI::App app{"What the registered pool's water-mark and cap buy"};
  app.add_option("--repeat", repeat)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  asio::io_context io;
  weir::bench::open_engine(io);                               // loads the provider's library
  ibv_device** const devices = ibv_get_device_list(nullptr);  // not empty: the engine found one
  ibv_context* const device = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  if (device == nullptr) {
    fmt::print(stderr, "cannot open the RDMA device\n");
    return 1;
  }
  {
    const auto pd = rdma::ProtectionDomain::allocate(device);
    if (!pd) {
      fmt::print(stderr, "{}\n", pd.error().what);
      return 1;
    }
    fmt::print(
        "| bursts of 32 MiB | block | taken | refused | us a burst | MiB at most | MiB between bursts |\n");
    fmt::print("|---|---|---|---|---|---|---|\n");
    for (const std::size_t bytes : {16u << 10, 256u << 10, 1u << 20}) {
      row(*pd, "water-mark of 64 MiB (the default)", {}, bytes, repeat);
      row(*pd, "of 16 MiB", {.keep_bytes = 16 * mib}, bytes, repeat);
      row(*pd, "none", {.keep_bytes = 0}, bytes, repeat);
      row(*pd, "cap of 8 MiB", {.max_bytes = 8 * mib}, bytes, repeat);
    }
  }
  ibv_close_device(device);
}
