// The processor's time stamp counter (rdtsc, rdtscp) shows virtual time: the kernel makes the instruction
// fault (PR_SET_TSC), and the handler answers for it. Other faults go to the program's own handler.
//
// Some virtual machines do not let it fault. There the instruction is replaced, where a program was loaded
// with it, by one that faults in any case (ud2), which has as many bytes. It is recognised with what
// compilers put behind it, the shift of its upper half: other bytes that happen to be 0f 31 stay as they are.
//
// /proc/cpuinfo, where programs read the counter's speed, shows the one that it has here.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "twin/inside/clocks.hpp"
#include "twin/inside/held_signals.hpp"

namespace weir::twin {
namespace {

struct sigaction programs_own{}, programs_own_illegal{};

// Sorted; written before the program begins.
constexpr std::size_t max_replaced = 4096;
std::array<std::uintptr_t, max_replaced> replaced;
std::size_t replaced_count = 0;

std::uint64_t counter() {
  const Ticks at = uptime_seconds * ticks_per_s + (controlled() ? read_clock() : 0);
  const auto khz = static_cast<std::uint64_t>(arena().tsc_mhz * 1000);
  constexpr std::uint64_t ticks_per_ms = ticks_per_ns * 1'000'000;
  return at / ticks_per_ms * khz + at % ticks_per_ms * khz / ticks_per_ms;
}

// The length of the instruction at `at` if it reads the counter; 0: it does not.
int reads_counter(const unsigned char* at) {
  if (at[0] != 0x0f) return 0;
  if (at[1] == 0x31) return 2;                    // rdtsc
  return at[1] == 0x01 && at[2] == 0xf9 ? 3 : 0;  // rdtscp
}

void answer(greg_t* registers, int length) {
  const int saved = errno;
  const std::uint64_t value = counter();
  registers[REG_RAX] = static_cast<std::uint32_t>(value);
  registers[REG_RDX] = static_cast<greg_t>(value >> 32);
  if (length == 3) registers[REG_RCX] = 0;
  registers[REG_RIP] += length;
  errno = saved;
}

void pass_on(const struct sigaction& own, int signal, siginfo_t* info, void* context) {
  if ((own.sa_flags & SA_SIGINFO) != 0 && own.sa_sigaction != nullptr)
    return own.sa_sigaction(signal, info, context);
  if (own.sa_handler != SIG_DFL && own.sa_handler != SIG_IGN) return own.sa_handler(signal);
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  WEIR_NEXT(sigaction)(signal, &plain, nullptr);  // it faults again, and ends the process
}

volatile bool probing = false, faulted = false;

void on_fault(int signal, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  // The kernel reports these faults without an address; the instruction itself can therefore be read.
  if (info->si_code == SI_KERNEL)
    if (const int length = reads_counter(reinterpret_cast<const unsigned char*>(registers[REG_RIP]))) {
      if (!probing) return answer(registers, length);
      faulted = true;
      registers[REG_RIP] += length;
      return;
    }
  pass_on(programs_own, signal, info, context);
}

void on_illegal(int signal, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto end = replaced.begin() + static_cast<std::ptrdiff_t>(replaced_count);
  if (std::binary_search(replaced.begin(), end, static_cast<std::uintptr_t>(registers[REG_RIP])))
    return answer(registers, 2);
  pass_on(programs_own_illegal, signal, info, context);
}

void keep_fault_signal(sigset_t& set) {
  ::sigdelset(&set, SIGSEGV);
  ::sigdelset(&set, SIGILL);
}

bool is_cpuinfo(const char* path) { return path != nullptr && std::strcmp(path, "/proc/cpuinfo") == 0; }

// How long a thread had the real processor, and waited for it: there is no such time here.
bool is_schedstat(const char* path) {
  return path != nullptr && std::string_view(path).starts_with("/proc/") &&
         std::string_view(path).ends_with("/schedstat");
}

// The file as it is, with the speed that the counter has here.
int open_cpuinfo() {
  const Outside direct;
  std::string text;
  const int file = ::open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  std::array<char, 4096> some;
  for (ssize_t got; (got = ::read(file, some.data(), some.size())) > 0;)
    text.append(some.data(), static_cast<std::size_t>(got));
  ::close(file);
  std::array<char, 64> line;
  std::snprintf(line.data(), line.size(), "cpu MHz\t\t: %.3f", arena().tsc_mhz);
  for (std::size_t at = 0; (at = text.find("cpu MHz", at)) != std::string::npos;) {
    const std::size_t end = text.find('\n', at);
    text.replace(at, (end == std::string::npos ? text.size() : end) - at, line.data());
    at += std::strlen(line.data());
  }
  const int made = ::memfd_create("cpuinfo", MFD_CLOEXEC);
  if (made < 0) return -1;
  if (::pwrite(made, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    ::close(made);
    return -1;
  }
  return made;
}

bool is_ours(const char* path) { return (is_cpuinfo(path) || is_schedstat(path)) && controlled(); }

FILE* open_ours(const char* path, const char* mode) {
  errno = ENOENT;
  const int file = is_schedstat(path) ? -1 : open_cpuinfo();
  return file < 0 ? nullptr : ::fdopen(file, mode);
}

constexpr std::array<unsigned char, 4> shift_of_upper_half{0x48, 0xc1, 0xe2, 0x20};  // shl $32, %rdx
constexpr std::size_t shift_within = 40, copied_within = 16;

// Whether the code uses both halves of the counter.
bool uses_counter(const unsigned char* code) {
  const auto* const end = code + shift_within;
  if (std::search(code, end, shift_of_upper_half.begin(), shift_of_upper_half.end()) != end) return true;
  bool upper = false, lower = false;  // copied to another register: mov %edx, ...; mov %eax, ...
  for (std::size_t i = 0; i + 1 < copied_within; ++i) {
    if (code[i] != 0x89) continue;
    upper |= (code[i + 1] & 0xf8) == 0xd0;
    lower |= (code[i + 1] & 0xf8) == 0xc0;
  }
  return upper && lower;
}

void replace_in(std::uintptr_t from, std::uintptr_t to) {
  auto* const begin = reinterpret_cast<unsigned char*>(from);
  auto* const end = reinterpret_cast<unsigned char*>(to);
  bool writable = false;
  for (unsigned char* at = begin; at + 2 + shift_within <= end; ++at) {
    if (at[0] != 0x0f || at[1] != 0x31 || replaced_count == max_replaced) continue;
    if (!uses_counter(at + 2)) continue;
    if (!writable && ::mprotect(begin, to - from, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
      ++process().uncontrolled;
      return;
    }
    writable = true;
    at[1] = 0x0b;
    replaced[replaced_count++] = reinterpret_cast<std::uintptr_t>(at);
  }
  if (writable) ::mprotect(begin, to - from, PROT_READ | PROT_EXEC);
}

void replace_reads() {
  std::FILE* const maps = WEIR_NEXT(fopen)("/proc/self/maps", "re");
  if (maps == nullptr) return;
  std::array<char, 4352> line;
  while (std::fgets(line.data(), line.size(), maps) != nullptr) {
    std::uintptr_t from = 0, to = 0;
    std::array<char, 5> rights{};
    if (std::sscanf(line.data(), "%lx-%lx %4s", &from, &to, rights.data()) != 3) continue;
    // Not the kernel's own page, the C library or the dynamic linker: their reads are behind calls of ours.
    if (rights[2] != 'x' || std::strchr(line.data(), '/') == nullptr ||
        std::strstr(line.data(), "/libc.so") != nullptr || std::strstr(line.data(), "/ld-linux") != nullptr ||
        std::strstr(line.data(), "/libweir_twin") != nullptr)
      continue;
    replace_in(from, to);
  }
  std::fclose(maps);
  std::sort(replaced.begin(), replaced.begin() + static_cast<std::ptrdiff_t>(replaced_count));
}

}  // namespace

void catch_processor_clock() {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  action.sa_sigaction = on_fault;
  WEIR_NEXT(sigaction)(SIGSEGV, &action, &programs_own);
  action.sa_sigaction = on_illegal;
  WEIR_NEXT(sigaction)(SIGILL, &action, &programs_own_illegal);
  if (::prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0) {
    probing = true;
    (void)__builtin_ia32_rdtsc();
    probing = false;
  }
  if (!faulted) replace_reads();
}

// The dynamic linker of what is executed reads it before it has a handler.
CounterReadable::CounterReadable() {
  if (faulted) ::prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
}
CounterReadable::~CounterReadable() {
  if (faulted) ::prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
}

}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) noexcept {
  if ((signal != SIGSEGV && signal != SIGILL) || !controlled()) {
    const int result = WEIR_NEXT(sigaction)(signal, wanted, before);
    if (result == 0 && wanted != nullptr) handler_set(signal, *wanted);
    return result;
  }
  struct sigaction& own = signal == SIGSEGV ? programs_own : programs_own_illegal;
  const struct sigaction was = own;
  if (wanted != nullptr) own = *wanted;
  if (before != nullptr) *before = was;
  return 0;
}

int sigprocmask(int how, const sigset_t* wanted, sigset_t* before) noexcept {
  if (wanted == nullptr || how == SIG_UNBLOCK || !controlled())
    return WEIR_NEXT(sigprocmask)(how, wanted, before);
  sigset_t changed = *wanted;
  keep_fault_signal(changed);
  return WEIR_NEXT(sigprocmask)(how, &changed, before);
}

int pthread_sigmask(int how, const sigset_t* wanted, sigset_t* before) noexcept {
  if (wanted == nullptr || how == SIG_UNBLOCK || !controlled())
    return WEIR_NEXT(pthread_sigmask)(how, wanted, before);
  sigset_t changed = *wanted;
  keep_fault_signal(changed);
  return WEIR_NEXT(pthread_sigmask)(how, &changed, before);
}

FILE* fopen(const char* path, const char* mode) {
  return is_ours(path) ? open_ours(path, mode) : WEIR_NEXT(fopen)(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  return is_ours(path) ? open_ours(path, mode) : WEIR_NEXT(fopen64)(path, mode);
}
}
