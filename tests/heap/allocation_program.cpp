// Runs under libweir_heap.so; the exit status is 0 if malloc and its relatives behave. Uses plain checks,
// because a test framework would allocate in between.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0;
void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

// Whether /proc/self/maps calls the page at `at` shared.
bool is_shared(const void* at) {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  for (std::string line; std::getline(maps, line);) {
    std::size_t dash = 0;
    const auto start = std::stoull(line, &dash, 16);
    const auto end = std::stoull(line.substr(dash + 1), nullptr, 16);
    if (address >= start && address < end) return line.substr(line.find(' ') + 1, 4) == "rw-s";
  }
  return false;
}

constexpr std::size_t large = 1 << 20;

void large_blocks_are_shared() {
  void* const a = std::malloc(large);
  void* const b = std::calloc(large, 1);
  void* c = nullptr;
  check(::posix_memalign(&c, 4096, 64) == 0, "posix_memalign");
  void* const d = ::memalign(4096, 8192);
  void* const e = std::aligned_alloc(65536, 100);
  check(is_shared(a) && is_shared(b) && is_shared(c) && is_shared(d) && is_shared(e),
        "large or aligned: shared");
  check(reinterpret_cast<std::uintptr_t>(e) % 65536 == 0, "aligned_alloc aligns");
  check(::malloc_usable_size(a) >= large, "malloc_usable_size");
  for (void* at : {a, b, c, d, e}) std::free(at);
}

void small_blocks_are_private() {
  void* const a = std::malloc(1000);
  check(!is_shared(a), "small: private");
  check(::malloc_usable_size(a) >= 1000, "malloc_usable_size of a small block");
  std::free(a);
}

void realloc_keeps_the_bytes() {
  auto* at = static_cast<char*>(std::malloc(100));
  std::memset(at, 'x', 100);
  for (const std::size_t bytes :
       {std::size_t{200'000}, std::size_t{5'000'000}, std::size_t{70'000}, std::size_t{50}}) {
    at = static_cast<char*>(std::realloc(at, bytes));
    check(at != nullptr && at[0] == 'x' && at[49] == 'x', "realloc keeps the bytes");
  }
  std::free(at);
}

void calloc_is_zero_also_the_second_time() {
  for (int i = 0; i < 2; ++i) {
    auto* const at = static_cast<unsigned char*>(std::calloc(1, large));
    check(at[0] == 0 && at[large / 2] == 0 && at[large - 1] == 0, "calloc is zero");
    std::memset(at, 255, large);
    std::free(at);
  }
}

void errors_are_as_the_man_page_says() {
  void* at = nullptr;
  check(::posix_memalign(&at, 3, 100) == EINVAL, "posix_memalign of a bad alignment");
  volatile std::size_t huge = ~std::size_t{0} / 2;
  errno = 0;
  check(std::malloc(huge) == nullptr && errno == ENOMEM, "malloc of too much");
  check(std::calloc(huge, 4) == nullptr, "calloc whose product overflows");
  check(::reallocarray(nullptr, huge, 4) == nullptr, "reallocarray whose product overflows");
}

void threads_do_not_mix() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 300; ++i) {
        auto* const at = static_cast<int*>(std::malloc(large));
        at[0] = at[large / sizeof(int) - 1] = t * 1000 + i;
        check(at[0] == t * 1000 + i && at[large / sizeof(int) - 1] == t * 1000 + i,
              "a block is one thread's");
        std::free(at);
      }
    });
  for (auto& thread : threads) thread.join();
}

void a_child_frees_nothing_of_its_parents() {
  auto* const ours = static_cast<char*>(std::malloc(large));
  ours[0] = 'x';
  const pid_t child = ::fork();
  if (child == 0) {
    std::free(ours);
    auto* const own = static_cast<char*>(std::malloc(large));  // private: the heap is its parent's
    own[0] = 'y';
    ::_exit(is_shared(own) ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  check(status == 0, "a child allocates from the C library");
  check(ours[0] == 'x', "a block survives a child that frees it");
  std::free(ours);
}

}  // namespace

int main() {
  large_blocks_are_shared();
  small_blocks_are_private();
  realloc_keeps_the_bytes();
  calloc_is_zero_also_the_second_time();
  errors_are_as_the_man_page_says();
  threads_do_not_mix();
  a_child_frees_nothing_of_its_parents();
  return failures == 0 ? 0 : 1;
}
