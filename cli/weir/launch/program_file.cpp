#include "cli/weir/launch/program_file.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

namespace weir::command {
namespace {

// Reads what the kernel and the loader read of a file; trusts nothing that was not read.
template <class Header>
bool read_at(std::ifstream& file, std::uint64_t offset, Header& header) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof header));
}

// Setuid, setgid and file capabilities make the loader ignore LD_LIBRARY_PATH, unless they change nothing.
std::string privilege_of(const std::string& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return {};
  if ((status.st_mode & S_ISUID) && status.st_uid != ::geteuid()) return "is setuid";
  if ((status.st_mode & S_ISGID) && status.st_gid != ::getegid()) return "is setgid";
  if (::geteuid() != 0 && ::getxattr(file.c_str(), "security.capability", nullptr, 0) > 0)
    return "has file capabilities";
  return {};
}

std::optional<Elf64_Phdr> find_segment(std::ifstream& file, const Elf64_Ehdr& elf, std::uint32_t type) {
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(file, elf.e_phoff + std::uint64_t{i} * elf.e_phentsize, segment)) return std::nullopt;
    if (segment.p_type == type) return segment;
  }
  return std::nullopt;
}

// The dynamic linker that the program names; nullopt: the program is static.
std::optional<std::string> dynamic_linker_of(std::ifstream& file, const Elf64_Ehdr& elf) {
  const auto segment = find_segment(file, elf, PT_INTERP);
  if (!segment) return std::nullopt;
  constexpr std::uint64_t longest_path = 4096;  // PATH_MAX
  std::string name(std::min<std::uint64_t>(segment->p_filesz, longest_path), '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(segment->p_offset));
  if (!file.read(name.data(), static_cast<std::streamsize>(name.size()))) return std::string{};
  return name.substr(0, name.find('\0'));
}

// C libraries whose dynamic linkers cannot load Weir's libraries, which are built for the GNU C library.
struct OtherLibc {
  std::string_view linker;  // begins the linker's file name
  std::string_view name;
};
constexpr OtherLibc other_libcs[] = {
    {"ld-musl-", "musl"}, {"ld64-uClibc", "uClibc"}, {"linker64", "Android's C library"}};

std::string_view other_libc(std::string_view linker) {
  linker.remove_prefix(linker.rfind('/') + 1);
  for (const auto& other : other_libcs)
    if (linker.starts_with(other.linker)) return other.name;
  return {};
}

bool read_elf(std::ifstream& file, Elf64_Ehdr& elf) {
  return read_at(file, 0, elf) && std::memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0;
}

// The interpreter that "#! /usr/bin/env python3" or "#!/bin/sh" names; empty if the file is not a script.
std::string interpreter_of_script(std::ifstream& file) {
  std::string line;
  file.clear();
  file.seekg(0);
  std::getline(file, line);
  if (!line.starts_with("#!")) return {};
  const auto start = line.find_first_not_of(" \t", 2);
  if (start == std::string::npos) return {};
  return line.substr(start, line.find_first_of(" \t", start) - start);
}

}  // namespace

std::expected<std::string, NotRunnable> find_program(const std::string& name, const char* path_variable) {
  const auto verdict = [&](const std::string& file) -> std::expected<std::string, NotRunnable> {
    struct stat status{};
    if (::stat(file.c_str(), &status) != 0)
      return std::unexpected(NotRunnable{127, name + ": " + std::strerror(errno)});
    if (S_ISDIR(status.st_mode)) return std::unexpected(NotRunnable{126, name + ": is a directory"});
    if (::access(file.c_str(), X_OK) != 0)
      return std::unexpected(NotRunnable{126, name + ": " + std::strerror(errno)});
    return file;
  };
  if (name.find('/') != std::string::npos) return verdict(name);
  std::expected<std::string, NotRunnable> found =
      std::unexpected(NotRunnable{127, name + ": command not found"});
  const std::string_view path = path_variable ? path_variable : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t start = 0; start <= path.size();) {
    const auto end = std::min(path.find(':', start), path.size());
    const auto directory = path.substr(start, end - start);
    auto candidate = verdict(std::string(directory.empty() ? "." : directory) + "/" + name);
    if (candidate) return candidate;
    if (candidate.error().status == 126) found = std::move(candidate);  // a later directory may still have it
    start = end + 1;
  }
  return found;
}

std::string why_libraries_cannot_be_replaced(const std::string& file_name) {
  const auto privilege = privilege_of(file_name);
  if (!privilege.empty())
    return file_name + " " + privilege +
           ", so the dynamic linker ignores LD_PRELOAD and LD_LIBRARY_PATH and it would use the system's "
           "libibverbs; run a "
           "copy "
           "without that privilege";
  std::ifstream file(file_name, std::ios::binary);
  const auto interpreter = interpreter_of_script(file);
  if (!interpreter.empty()) {
    std::ifstream second(interpreter, std::ios::binary);
    Elf64_Ehdr elf{};
    return read_elf(second, elf) ? why_libraries_cannot_be_replaced(interpreter) : std::string{};
  }
  Elf64_Ehdr elf{};
  if (!read_elf(file, elf)) return {};
  if (elf.e_ident[EI_CLASS] != ELFCLASS64)
    return file_name + " is a 32-bit program and Weir's libraries are 64-bit; use a 64-bit build of it";
  const auto linker = dynamic_linker_of(file, elf);
  if (!linker)
    return file_name +
           " is statically linked: it carries its own libibverbs, which cannot be replaced; link it "
           "dynamically";
  if (const auto libc = other_libc(*linker); !libc.empty())
    return file_name + " is linked with " + std::string(libc) + " (" + *linker +
           "), and Weir's libraries with the GNU C library; build it where that is the C library";
  return {};
}

bool looks_in_its_own_path_first(const std::string& file_name) {
  std::ifstream file(file_name, std::ios::binary);
  Elf64_Ehdr elf{};
  if (!read_elf(file, elf)) return false;
  const auto segment = find_segment(file, elf, PT_DYNAMIC);
  bool rpath = false, runpath = false;
  constexpr std::uint64_t most = 65536;
  const std::uint64_t count =
      segment ? std::min<std::uint64_t>(segment->p_filesz / sizeof(Elf64_Dyn), most) : 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    Elf64_Dyn entry{};
    if (!read_at(file, segment->p_offset + i * sizeof entry, entry) || entry.d_tag == DT_NULL) break;
    rpath |= entry.d_tag == DT_RPATH;
    runpath |= entry.d_tag == DT_RUNPATH;
  }
  return rpath && !runpath;  // with both, DT_RPATH is ignored (ld.so(8))
}

}  // namespace weir::command
