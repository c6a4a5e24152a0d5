// Sets the server's clock of the system: NTP corrects it, an administrator turns it back, or the machine was
// suspended. The server has a library preloaded that shows it a wrong clock (stepped_clock.cpp).
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <stdexcept>

#include "link/unique_fd.hpp"
#include "tests/bystander/misdeeds.hpp"

namespace weir::bystander::clocks {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000, hour_ns = 3600 * second_ns;
constexpr std::int64_t steps_ns[] = {0,           second_ns,    -second_ns,    hour_ns,       -hour_ns,
                                     2 * hour_ns, 24 * hour_ns, -24 * hour_ns, 720 * hour_ns, -720 * hour_ns};

std::atomic<std::int64_t>& shown_error() {
  const link::UniqueFd file(::open(std::getenv(file_variable), O_RDWR | O_CLOEXEC));
  void* const place =
      ::mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (place == MAP_FAILED) throw std::runtime_error("cannot set the server's clock");
  return *static_cast<std::atomic<std::int64_t>*>(place);
}

}  // namespace

void step(Attack& attack) {
  std::atomic<std::int64_t>& error_ns = shown_error();
  for (;;) {
    error_ns = steps_ns[attack.below(std::size(steps_ns))];
    attack.did();
    const timespec time{0, static_cast<long>(attack.below(40'000'000))};
    ::nanosleep(&time, nullptr);
  }
}

}  // namespace weir::bystander::clocks
