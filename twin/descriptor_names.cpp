#include "twin/descriptor_names.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace weir::twin {
namespace {

std::optional<std::uint32_t> hexadecimal(std::string_view text) {
  std::uint32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// "02004D0A:9C40": the address as this processor's number; in tcp6 behind 24 digits, which are not shown.
std::string end_of(std::string_view text) {
  const auto colon = text.find(':');
  constexpr std::size_t digits = 8;
  if (colon == text.npos || colon < digits) return {};
  const auto address = hexadecimal(text.substr(colon - digits, digits));
  const auto port = hexadecimal(text.substr(colon + 1));
  if (!address || !port) return {};
  return fmt::format("{}.{}.{}.{}:{}", *address & 255, *address >> 8 & 255, *address >> 16 & 255,
                     *address >> 24, *port);
}

}  // namespace

std::string connection_name(const std::string& line, const std::string& inode) {
  std::istringstream fields(line);
  std::array<std::string, 10> field;  // number, both ends, state, queues, timers, retransmits, user, timeout
  for (auto& each : field) fields >> each;
  if (field[9] != inode) return {};
  constexpr std::string_view listens = "0A";
  const std::string own = end_of(field[1]), peer = end_of(field[2]);
  if (own.empty() || peer.empty()) return {};
  return field[3] == listens ? "TCP listening at " + own : "TCP " + own + " to " + peer;
}

std::string descriptor_name(pid_t process, int descriptor) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::error_code error;
  const std::string link =
      std::filesystem::read_symlink(folder + "/fd/" + std::to_string(descriptor), error).string();
  constexpr std::string_view socket = "socket:[";
  if (!link.starts_with(socket)) return link;
  const std::string inode = link.substr(socket.size(), link.size() - socket.size() - 1);
  for (const char* const table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream file(folder + table);
    for (std::string line; std::getline(file, line);)
      if (auto name = connection_name(line, inode); !name.empty()) return name;
  }
  return link;
}

}  // namespace weir::twin
