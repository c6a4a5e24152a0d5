#include "link/memory/memory_map.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <optional>
#include <string_view>
#include <utility>

#include "link/unique_fd.hpp"

namespace weir::link {
namespace {

using Visit = std::function<bool(const MappedRange&)>;

UniqueFd open_maps() { return UniqueFd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)); }

// ---- asking the kernel for one range at a time

// struct procmap_query of linux/fs.h (Linux 6.11), which Debian 12's headers lack.
struct Query {
  std::uint64_t size, flags, address;                             // in
  std::uint64_t start, end, vma_flags, page_size, offset, inode;  // out
  std::uint32_t major, minor;                                     // out
  std::uint32_t name_size, build_id_size;                         // in and out; 0: not needed
  std::uint64_t name_at, build_id_at;                             // in
};
static_assert(sizeof(Query) == 104);
constexpr unsigned long procmap_query = _IOWR('f', 17, Query);
constexpr std::uint64_t may_read = 1, may_write = 2, is_shared = 8;  // in vma_flags

enum class Answer { found, hole, no_answer };

Answer ask(int maps, std::uint64_t address, MappedRange& range) {
  Query query{};
  query.size = sizeof query;
  query.address = address;
  if (::ioctl(maps, procmap_query, &query) != 0) return errno == ENOENT ? Answer::hole : Answer::no_answer;
  range = {.start = query.start,
           .end = query.end,
           .offset = query.offset,
           .readable = (query.vma_flags & may_read) != 0,
           .writable = (query.vma_flags & may_write) != 0,
           .shared = (query.vma_flags & is_shared) != 0,
           .file = {makedev(query.major, query.minor), static_cast<ino_t>(query.inode)}};
  return Answer::found;
}

// Empty: no path there; nullopt: no answer.
std::optional<std::string> ask_path(int maps, std::uint64_t address) {
  std::array<char, PATH_MAX> name{};
  Query query{};
  query.size = sizeof query;
  query.address = address;
  query.name_size = name.size();
  query.name_at = reinterpret_cast<std::uint64_t>(name.data());
  if (::ioctl(maps, procmap_query, &query) != 0) return std::nullopt;
  return query.name_size > 0 && name[0] == '/' ? name.data() : "";
}

bool ask_for_each(int maps, std::uint64_t addr, std::uint64_t end, const Visit& visit) {
  MappedRange range;
  for (std::uint64_t at = addr; at < end; at = range.end) {
    const Answer answer = ask(maps, at, range);
    if (answer == Answer::no_answer && at == addr) return false;
    if (answer != Answer::found || !visit(range)) break;
  }
  return true;
}

// ---- reading the whole text

std::string read_all(int maps) {
  std::string text;
  std::array<char, 4096> part;  // the kernel returns no more at a time
  for (ssize_t got; (got = ::read(maps, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  return text;
}

std::uint64_t take_number(std::string_view& text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty()) text.remove_prefix(1);  // the separator
  return value;
}

// "start-end perms offset major:minor inode   path" (proc(5)); the path stays in `line`.
MappedRange parse(std::string_view& line) {
  MappedRange m;
  m.start = take_number(line, 16);
  m.end = take_number(line, 16);
  if (line.size() < 5) return {};
  m.readable = line[0] == 'r';
  m.writable = line[1] == 'w';
  m.shared = line[3] == 's';
  line.remove_prefix(5);
  m.offset = take_number(line, 16);
  const auto major = static_cast<unsigned>(take_number(line, 16));
  const auto minor = static_cast<unsigned>(take_number(line, 16));
  m.file = {makedev(major, minor), static_cast<ino_t>(take_number(line, 10))};
  return m;
}

template <class VisitLine>  // (const MappedRange&, std::string_view path); false: stop
void each_line(const std::string& maps, VisitLine visit) {
  std::string_view rest = maps;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    const MappedRange range = parse(line);
    if (!visit(range, line.substr(std::min(line.find('/'), line.size())))) return;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
}

bool read_each(int maps, std::uint64_t addr, std::uint64_t end, const Visit& visit) {
  const std::string text = read_all(maps);
  std::uint64_t at = addr;
  each_line(text, [&](const MappedRange& range, std::string_view) {
    if (range.end <= at) return true;
    if (range.start > at || at >= end || !visit(range)) return false;
    at = range.end;
    return true;
  });
  return !text.empty();
}

}  // namespace

// The descriptor is not kept: a forked child would ask about its parent through it.
bool each_mapped_range(std::uint64_t addr, std::uint64_t end, const Visit& visit, MapSource source) {
  const UniqueFd maps = open_maps();
  if (!maps) return false;
  if (source != MapSource::text && ask_for_each(maps.get(), addr, end, visit)) return true;
  return source != MapSource::query && read_each(maps.get(), addr, end, visit);
}

std::string path_mapped_at(std::uint64_t addr, MapSource source) {
  std::string found;
  const UniqueFd maps = open_maps();
  if (!maps) return found;
  if (source != MapSource::text)
    if (auto path = ask_path(maps.get(), addr)) return *std::move(path);
  if (source == MapSource::query) return found;
  each_line(read_all(maps.get()), [&](const MappedRange& range, std::string_view path) {
    if (addr < range.start || addr >= range.end) return true;
    found = path;
    return false;
  });
  return found;
}

}  // namespace weir::link
