// The machine's limits: the ways in which one process can write into another's memory, without any protocol.
// Compare the NIC's WRITE with the row of its tier (docs/measurements).
//
//   mapped      memcpy into memory that both processes map
//   vm_writev   process_vm_writev into the other's private memory
//
// A child process holds the target memory and sleeps. Prints one line for each size: GB/s of each
// way, median of --repeat runs.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t largest = 8u << 20;

struct Target {
  std::byte* mapped = nullptr;  // the same pages in both processes
  std::byte* private_in_child = nullptr;
  pid_t child = -1;
};

std::byte* map(int flags) {
  void* at = ::mmap(nullptr, largest, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("mmap failed: not enough memory");
  std::memset(at, 1, largest);
  return static_cast<std::byte*>(at);
}

Target start_target() {
  Target target;
  target.mapped = map(MAP_SHARED);
  target.private_in_child = map(MAP_PRIVATE);
  int ready[2];
  if (::pipe(ready) != 0) throw std::runtime_error("pipe failed");
  target.child = ::fork();
  if (target.child == 0) {
    std::memset(target.private_in_child, 2, largest);  // its own pages now
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "", 1);
    for (;;) ::pause();
  }
  char byte;
  [[maybe_unused]] const ssize_t heard = ::read(ready[0], &byte, 1);
  return target;
}

template <class Copy>
double gigabytes_per_second(std::size_t size, int repeats, Copy copy) {
  const std::size_t rounds = std::max<std::size_t>(8, (256u << 20) / std::max<std::size_t>(size, 4096));
  std::vector<double> rates;
  for (int r = 0; r < repeats; ++r) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < rounds; ++i) copy();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(size * rounds) / took.count() / 1e9);
  }
  std::nth_element(rates.begin(), rates.begin() + repeats / 2, rates.end());
  return rates[static_cast<std::size_t>(repeats / 2)];
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"How fast one process can put bytes into another's memory, by the NIC's two same-host tiers"};
  int repeats = 5;
  app.add_option("--repeat", repeats, "runs per size; the median counts")->check(CLI::Range(1, 99));
  CLI11_PARSE(app, argc, argv);

  const Target target = start_target();
  std::byte* source = map(MAP_PRIVATE);
  fmt::print("{:>9} {:>14} {:>17}\n", "bytes", "mapped GB/s", "vm_writev GB/s");
  for (const std::size_t size : {64u, 4096u, 65536u, 1u << 20, 8u << 20}) {
    const double mapped = gigabytes_per_second(size, repeats, [&] {
      std::memcpy(target.mapped, source, size);
      asm volatile("" ::: "memory");
    });
    const double vm = gigabytes_per_second(size, repeats, [&] {
      const iovec local{source, size};
      const iovec remote{target.private_in_child, size};
      if (::process_vm_writev(target.child, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(size))
        throw std::runtime_error("process_vm_writev refused: allow tracing between processes of one user");
    });
    fmt::print("{:>9} {:>14.2f} {:>17.2f}\n", size, mapped, vm);
  }
  ::kill(target.child, SIGKILL);
  ::waitpid(target.child, nullptr, 0);
}
