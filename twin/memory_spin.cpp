#include "twin/memory_spin.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::twin {
namespace {

constexpr unsigned max_period = 1024;
constexpr std::size_t page_bytes = 4096, max_memory_bytes = std::size_t{256} << 20;
constexpr std::size_t max_vector_bytes = 4096;              // of XSAVE
constexpr std::uint64_t resident = std::uint64_t{3} << 62;  // in memory, or swapped out

struct State {
  user_regs_struct registers{};
  std::size_t vector_bytes = 0;
  std::array<std::byte, max_vector_bytes> vectors{};

  bool operator==(const State& other) const {
    return std::memcmp(&registers, &other.registers, sizeof registers) == 0 &&
           vector_bytes == other.vector_bytes &&
           std::memcmp(vectors.data(), other.vectors.data(), vector_bytes) == 0;
  }
};

struct Memory {
  std::vector<std::pair<std::uint64_t, std::size_t>> places;
  std::vector<std::byte> bytes;
  bool operator==(const Memory&) const = default;
};

// The arena: the coordinator writes it, and nobody waits for it.
constexpr std::string_view not_its_own = "memfd:weir-twin";

class Stepped {
 public:
  explicit Stepped(StoppedThread& thread)
      : stopped_(thread), process_(thread.process()), thread_(thread.thread()) {}

  // False: it is in a system call, or would enter one: it may sleep there.
  bool may_step() const {
    const auto call =
        static_cast<long>(::ptrace(PTRACE_PEEKUSER, thread_, offsetof(user_regs_struct, orig_rax), nullptr));
    constexpr long both_bytes = 0xffff, syscall_instruction = 0x050f;
    const long code = ::ptrace(PTRACE_PEEKTEXT, thread_, instruction(), nullptr);
    return call < 0 && (code & both_bytes) != syscall_instruction;
  }
  bool step() { return may_step() && stopped_.step(); }
  std::optional<State> state() const {
    State found;
    const auto registers = stopped_.registers();
    if (!registers) return std::nullopt;
    found.registers = *registers;
    iovec vectors{found.vectors.data(), found.vectors.size()};
    if (::ptrace(PTRACE_GETREGSET, thread_, reinterpret_cast<void*>(NT_X86_XSTATE), &vectors) != 0)
      return std::nullopt;
    found.vector_bytes = vectors.iov_len;
    return found;
  }
  std::uint64_t instruction() const {
    return static_cast<std::uint64_t>(
        ::ptrace(PTRACE_PEEKUSER, thread_, offsetof(user_regs_struct, rip), nullptr));
  }

  // All memory that the process may have written; nullopt: it is too much, or cannot be read.
  std::optional<Memory> memory() const {
    const link::UniqueFd map(::open(path("pagemap").c_str(), O_RDONLY | O_CLOEXEC));
    std::ifstream maps(path("maps"));
    if (!map || !maps) return std::nullopt;
    Memory all;
    std::vector<std::uint64_t> words;
    for (std::string line; std::getline(maps, line);) {
      std::uint64_t from = 0, to = 0;
      std::array<char, 5> rights{};
      if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights.data()) != 3 || rights[1] != 'w')
        continue;
      if (line.find(not_its_own) != std::string::npos) continue;
      const std::size_t count = (to - from) / page_bytes;
      constexpr std::size_t at_once = 65536;
      for (std::size_t first = 0; first < count; first += at_once) {
        words.resize(std::min(at_once, count - first));
        const auto bytes = static_cast<ssize_t>(words.size() * sizeof(std::uint64_t));
        if (::pread(map.get(), words.data(), static_cast<std::size_t>(bytes),
                    static_cast<off_t>((from / page_bytes + first) * sizeof(std::uint64_t))) != bytes)
          return std::nullopt;
        for (std::size_t i = 0; i < words.size();) {
          std::size_t end = i;
          while (end < words.size() && (words[end] & resident) != 0) ++end;
          if (end != i && !read(all, from + (first + i) * page_bytes, (end - i) * page_bytes))
            return std::nullopt;
          i = end + 1;
        }
      }
    }
    return all;
  }

 private:
  bool read(Memory& all, std::uint64_t at, std::size_t bytes) const {
    const std::size_t before = all.bytes.size();
    if (before + bytes > max_memory_bytes) return false;
    all.bytes.resize(before + bytes);
    all.places.emplace_back(at, bytes);
    const iovec local{all.bytes.data() + before, bytes}, remote{reinterpret_cast<void*>(at), bytes};
    return ::process_vm_readv(process_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
  }
  std::string path(const char* name) const { return "/proc/" + std::to_string(process_) + "/" + name; }

  StoppedThread& stopped_;
  pid_t process_, thread_;
};

// The number of steps after which registers recur; 0: they do not, or the machine is too busy to tell in a
// moment. Then the thread, which may only be waiting for the processor, goes on, and is looked at later.
unsigned find_period(Stepped& thread) {
  constexpr std::chrono::milliseconds moment{250};
  const auto until = std::chrono::steady_clock::now() + moment;
  const std::uint64_t begin = thread.instruction();
  const auto first = thread.state();
  if (!first) return 0;
  for (unsigned steps = 1; steps <= max_period; ++steps) {
    if (!thread.step() || std::chrono::steady_clock::now() > until) return 0;
    if (thread.instruction() != begin) continue;
    const auto now = thread.state();
    if (now && *now == *first) return steps;
  }
  return 0;
}

bool memory_recurs(Stepped& thread, unsigned period) {
  const auto before = thread.memory();
  const auto first = thread.state();
  if (!before || !first) return false;
  for (unsigned i = 0; i < period; ++i)
    if (!thread.step()) return false;
  const auto last = thread.state();
  return last && *last == *first && thread.memory() == before;
}

}  // namespace

std::unique_ptr<MemorySpin> MemorySpin::prove(pid_t process, pid_t thread) {
  auto stopped = StoppedThread::stop(process, thread);
  if (!stopped) return nullptr;
  Stepped stepped(*stopped);
  const unsigned period = find_period(stepped);
  if (period == 0 || !memory_recurs(stepped, period)) return nullptr;
  return std::unique_ptr<MemorySpin>(new MemorySpin(std::move(stopped), period));
}

}  // namespace weir::twin
