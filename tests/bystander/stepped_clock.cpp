// Preloaded into a server under test: its clock of the system is wrong by what a file says, in ns. The other
// clocks are right, and so are the kernel's own waits: a deadline counted by the clock of the system comes at
// another time than it should.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

const std::atomic<std::int64_t>* file() {
  const char* const name = std::getenv("WEIR_BYSTANDER_CLOCK");
  const int fd = name != nullptr ? ::open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) std::abort();  // the test would show nothing
  void* const place = ::mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (place == MAP_FAILED) std::abort();
  return static_cast<const std::atomic<std::int64_t>*>(place);
}

std::int64_t error_ns() {
  static const std::atomic<std::int64_t>* const shown = file();
  return *shown;
}

int read_clock(clockid_t clock, timespec* at) {
  static const auto next =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  return next(clock, at);
}

timespec wrong_time() {
  timespec now{};
  read_clock(CLOCK_REALTIME, &now);
  const std::int64_t ns = now.tv_sec * second_ns + now.tv_nsec + error_ns();
  return {ns / second_ns, ns % second_ns};
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* at) noexcept {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return read_clock(clock, at);
  *at = wrong_time();
  return 0;
}

int gettimeofday(timeval* at, void*) noexcept {
  const timespec now = wrong_time();
  *at = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* at) noexcept {
  const time_t now = wrong_time().tv_sec;
  if (at != nullptr) *at = now;
  return now;
}

}  // extern "C"
