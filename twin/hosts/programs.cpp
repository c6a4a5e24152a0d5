#include "twin/hosts/programs.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

namespace weir::hosts {
namespace {

namespace fs = std::filesystem;

// The words of a command line, which end with zeros. One that has none (a process that is ending) has its
// name.
std::string command_of(const fs::path& process) {
  std::ifstream file(process / "cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), {}};
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::ranges::replace_if(words, [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  if (words.empty()) std::getline(std::ifstream(process / "comm"), words);
  return words;
}

}  // namespace

std::vector<HostProgram> programs_in(const Listing& listing) {
  std::vector<HostProgram> programs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string number = entry.path().filename();
    pid_t pid = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), pid);
    if (read.ec != std::errc{} || read.ptr != number.data() + number.size()) continue;
    struct stat network{};
    if (::stat((entry.path() / "ns/net").c_str(), &network) != 0) continue;
    const auto host = std::ranges::find(listing.hosts, network.st_ino, &ListedHost::network_inode);
    if (host == listing.hosts.end()) continue;
    programs.push_back(
        {static_cast<std::size_t>(host - listing.hosts.begin()), pid, command_of(entry.path())});
  }
  std::ranges::sort(programs, {},
                    [](const HostProgram& program) { return std::tuple(program.host, program.pid); });
  return programs;
}

}  // namespace weir::hosts
