#include "verbs/check/place.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>

namespace weir::check {
namespace {

namespace fs = std::filesystem;

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

struct Module {
  std::string path;
  std::uintptr_t base = 0;
  std::uintptr_t offset = 0;  // of the code, as debug information counts
  const char* symbol = nullptr;
};

// A return address is behind its call, which may be the last instruction of its line.
Module module_of(const void* return_address) {
  const auto* const code = static_cast<const char*>(return_address) - 1;
  Dl_info info{};
  if (::dladdr(code, &info) == 0 || info.dli_fbase == nullptr) return {};
  Module module{.path = info.dli_fname != nullptr ? info.dli_fname : "",
                .base = reinterpret_cast<std::uintptr_t>(info.dli_fbase),
                .symbol = info.dli_sname};
  const bool fixed = static_cast<const Elf64_Ehdr*>(info.dli_fbase)->e_type == ET_EXEC;
  module.offset = reinterpret_cast<std::uintptr_t>(code) - (fixed ? 0 : module.base);
  return module;
}

// The program is named as it was called, which need not lead anywhere from here.
std::string file_of(const Module& module) {
  char resolved[PATH_MAX];
  if (::realpath(module.path.c_str(), resolved) != nullptr) return resolved;
  const ssize_t length = ::readlink("/proc/self/exe", resolved, sizeof resolved - 1);
  return length > 0 ? std::string(resolved, static_cast<std::size_t>(length)) : module.path;
}

// Without its parameters: "(anonymous namespace)" and "operator()" keep their parentheses.
std::string without_parameters(std::string_view function) {
  std::size_t depth = 0;
  for (std::size_t at = function.size(); function.ends_with(')') && at-- != 0;) {
    if (function[at] == ')') ++depth;
    if (function[at] == '(' && --depth == 0) {
      const bool is_name = at == 0 || function.substr(0, at).ends_with("operator");
      return std::string(is_name ? function : function.substr(0, at));
    }
  }
  return std::string(function);
}

std::string demangled(const char* symbol) {
  int status = 0;
  char* const plain = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  if (plain == nullptr) return symbol;
  std::string name = plain;
  std::free(plain);
  return without_parameters(name);
}

// The environment without what makes children run on the software NIC.
std::vector<char*> plain_environment() {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("LD_PRELOAD=") && !text.starts_with("LD_LIBRARY_PATH=") &&
        !text.starts_with("WEIR_"))
      kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

// What `addr2line` prints about that code: a line with the function and one with the place, for the innermost
// inlined function first. Empty: there is no such program.
std::string asked_addr2line(const Module& module) {
  char offset[32];
  std::snprintf(offset, sizeof offset, "0x%lx", static_cast<unsigned long>(module.offset));
  std::array<const char*, 8> words{"addr2line", "-C", "-f", "-i", "-e", module.path.c_str(), offset, nullptr};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  auto environment = plain_environment();
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], &actions, nullptr,
                                    const_cast<char* const*>(words.data()), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> piece;
  while (failed == 0) {
    const ssize_t got = ::read(ends[0], piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (failed == 0)
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  return said;
}

std::string shortened(std::string_view where) {
  where = where.substr(0, where.find(" (discriminator"));
  std::error_code error;
  const fs::path path = fs::path(where).lexically_normal();
  const fs::path here = fs::current_path(error);
  if (error || path.is_relative()) return path.string();
  const fs::path relative = path.lexically_relative(here);
  return relative.empty() || relative.begin()->string() == ".." ? path.string() : relative.string();
}

// Inline functions of the verbs headers stand for calls; the caller is the program's.
bool is_of_verbs_headers(std::string_view function) {
  return function.starts_with("ibv_") || function.starts_with("__ibv_") ||
         function.starts_with("rdma_post_") || function.starts_with("rdma_get_");
}

// One address has several frames if functions were inlined there, innermost first; none if it is in a
// function of the verbs headers that was not.
std::vector<Frame> frames_of(void* code) {
  Module module = module_of(code);
  if (module.path.empty()) return {{"??", "??"}};
  module.path = file_of(module);
  std::vector<Frame> frames;
  bool of_header = module.symbol != nullptr && is_of_verbs_headers(module.symbol);
  const std::string said = asked_addr2line(module);
  std::string_view rest = said;
  while (!rest.empty()) {
    const auto take_line = [&] {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      return line;
    };
    const std::string_view function = take_line(), where = take_line();
    if (is_of_verbs_headers(function)) {
      of_header = true;
      continue;
    }
    if (where.starts_with("??") || where.empty()) continue;
    frames.push_back({without_parameters(function), shortened(where)});
  }
  if (!frames.empty() || of_header) return frames;
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%lx", static_cast<unsigned long>(module.offset));
  return {{module.symbol != nullptr ? demangled(module.symbol) : "??",
           std::string(file_name(module.path)) + offset}};
}

bool is_checker(const void* code) {
  static const std::uintptr_t own = module_of(reinterpret_cast<void*>(&place_here)).base;
  return module_of(code).base == own;
}

}  // namespace

Place place_here() {
  std::array<void*, 2 * Place::max_frames> all{};
  const auto count = static_cast<std::size_t>(::backtrace(all.data(), static_cast<int>(all.size())));
  std::size_t first = 0;
  // AddressSanitizer stands in front of backtrace(), so that its frame is the first.
  while (first + 1 < count && !is_checker(all[first]) && is_checker(all[first + 1])) ++first;
  while (first < count && is_checker(all[first])) ++first;
  std::size_t last = first;
  while (last < count && is_of_rdma_libraries(all[last])) ++last;
  if (last != count) first = last;
  Place place;
  for (std::size_t i = 0; i < Place::max_frames && first < count; ++i, ++first) place.frames[i] = all[first];
  return place;
}

bool is_of_rdma_libraries(const void* code) {
  const std::string path = module_of(code).path;
  const std::string_view name = file_name(path);
  return name.starts_with("librdmacm.so") || name.starts_with("libibverbs.so") ||
         name.starts_with("librspreload.so");
}

std::vector<Frame> frames_of(const Place& place) {
  static std::mutex mutex;
  static auto* const known = new std::map<void*, std::vector<Frame>>;
  const std::lock_guard lock(mutex);
  std::vector<Frame> frames;
  for (void* const code : place.frames) {
    if (code == nullptr) break;
    const auto [found, made] = known->try_emplace(code);
    if (made) found->second = frames_of(code);
    if (found->second.empty()) continue;
    for (const Frame& frame : found->second) frames.push_back(frame);
    if (place.depth == Place::Depth::call) break;
    const bool of_c_library = frames.back().function.starts_with("__libc_start");
    if (of_c_library || frames.back().function == "main") {  // what started it says nothing
      if (of_c_library && frames.size() > 1) frames.pop_back();
      break;
    }
  }
  return frames;
}

}  // namespace weir::check
