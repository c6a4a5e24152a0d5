// `weir trace`: like `weir run`, but the program's NIC also records its requests and their outcomes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "cli/weir/command.hpp"
#include "cli/weir/launch/launch.hpp"
#include "screen/terminal.hpp"

namespace weir::command {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view help = R"(Usage: weir trace [OPTIONS] [--] COMMAND [ARG...]

Runs COMMAND as `weir run` does, and writes a line for each work request, completion and registration of memory: time,
process, device, queue pair, event. With --pcap it also writes RoCEv2 packets, for Wireshark: the real ones to and from
other hosts and, for work within this host, the packets that the work stands for.

    $ weir run -- ibv_rc_pingpong & sleep 1
    $ weir trace -- ibv_rc_pingpong localhost
    $ weir run -- ib_write_lat -n 10 & sleep 1
    $ weir trace --pcap write.pcapng --log write.log -- ib_write_lat -n 10 localhost; tshark -r write.pcapng

Options, besides those of weir run:
  --log FILE     file for the lines (default: standard error, unless --pcap is given)
  --pcap FILE    write packets to this file, as pcapng: this program's requests and the answers to them
  --qp N         only this queue pair: its number, or its index in its process (the first has 2); may be repeated
  --snap BYTES   keep only this many bytes of each packet (default: all)
  --limit SIZE   maximum size of each file, with k, M or G (default 1G); what does not fit is counted and reported
  --help         this text

All processes that COMMAND starts write to the same files, which are complete however a process ends. Old files are
emptied. Exit status: as weir run; 1 if a file cannot be written.
)";

struct Sizes {
  std::string text;
  unsigned long long bytes = 0;
};

// "64k", "10M", "2G", "1000".
bool read_size(Sizes& size) {
  const char* const end = size.text.data() + size.text.size();
  const auto read = std::from_chars(size.text.data(), end, size.bytes);
  if (read.ec != std::errc{}) return false;
  unsigned shift = 0;
  if (read.ptr != end) {
    constexpr std::string_view units = "kMG";
    const std::size_t unit = units.find(*read.ptr == 'K' ? 'k' : *read.ptr);
    if (unit == std::string_view::npos || read.ptr + 1 != end) return false;
    shift = 10 * static_cast<unsigned>(unit + 1);
  }
  size.bytes <<= shift;
  return size.bytes >> shift != 0;
}

// The numbers of a list, which may be decimal or 0x hexadecimal, as decimal; empty: not such a list.
std::string read_queue_pairs(std::string_view list) {
  std::string numbers;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    const bool hexadecimal = word.starts_with("0x");
    if (hexadecimal) word.remove_prefix(2);
    unsigned number = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number, hexadecimal ? 16 : 10);
    if (read.ec != std::errc{} || read.ptr != word.data() + word.size()) return {};
    numbers += (numbers.empty() ? "" : ",") + std::to_string(number);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return numbers;
}

// Empties an old file here, once, because the processes append. They may have another working directory.
bool begin_file(std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  ::close(fd);
  path = fs::absolute(path);
  return true;
}

// True also for two names of one file. False for files that take everything, like /dev/null.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::exists(a, error) && !fs::is_regular_file(a, error)) return false;
  if (a == b || fs::equivalent(a, b, error)) return true;
  const auto one = fs::weakly_canonical(a, error);  // empty if the path has none
  return !one.empty() && one == fs::weakly_canonical(b, error);
}

}  // namespace

int trace(std::span<const std::string> arguments) {
  Launch launch;
  std::string log, pcap, queue_pairs;
  Sizes snap, limit;
  auto options = launch.options();
  options.push_back({.name = "--log", .value = &log});
  options.push_back({.name = "--pcap", .value = &pcap});
  options.push_back({.name = "--qp", .value = &queue_pairs, .list = true});
  options.push_back({.name = "--snap", .value = &snap.text});
  options.push_back({.name = "--limit", .value = &limit.text});
  const auto command = read_launch_options("trace", arguments, options, help);
  if (!command) return command.error();
  if (launch.help) {
    screen::print_wrapped(stdout, help);
    return 0;
  }
  launch.command = *command;
  if (launch.command.empty()) return become("trace", launch);  // it complains before a file is emptied

  const auto set = [&](const char* name, const std::string& value) {
    launch.environment.emplace_back(name, value);
  };
  for (auto& [size, option, variable] :
       {std::tuple{&snap, "--snap", "WEIR_TRACE_SNAP"}, std::tuple{&limit, "--limit", "WEIR_TRACE_LIMIT"}}) {
    if (size->text.empty()) continue;
    if (!read_size(*size))
      return complain("trace", std::string(option) + " wants a size like 96, 64k or 1G, not " + size->text);
    set(variable, std::to_string(size->bytes));
  }
  if (!queue_pairs.empty()) {
    const std::string numbers = read_queue_pairs(queue_pairs);
    if (numbers.empty())
      return complain("trace", "--qp wants a number like 2 or 0x208002, not " + queue_pairs);
    set("WEIR_TRACE_QPS", numbers);
  }
  if (log.empty() && pcap.empty()) log = "-";
  if (pcap == "-") return complain("trace", "--pcap wants a file: packets are not for standard error");
  if (!pcap.empty() && same_file(log, pcap))
    return complain("trace", "--log and --pcap are the same file, " + pcap + "; give each its own");
  for (auto& [path, variable] : {std::pair{&log, "WEIR_TRACE_LOG"}, std::pair{&pcap, "WEIR_TRACE_PCAP"}}) {
    if (path->empty()) continue;
    if (*path != "-" && !begin_file(*path))
      return complain("trace", "cannot write " + *path + ": " + std::strerror(errno), 1);
    set(variable, *path);
  }
  return become("trace", launch);
}

}  // namespace weir::command
