#include "verbs/ibv/sysfs.hpp"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "verbs/ibv/objects.hpp"

namespace weir::verbs {

// Locally administered, and the same on every start on a host: a hash of its name (FNV-1a).
__be64 device_guid() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char* c = host.data(); *c != 0; ++c)
    hash = (hash ^ static_cast<std::uint8_t>(*c)) * 0x100000001b3;
  return htobe64(0x0257455952000000 | (hash & 0xffffff));
}

namespace {

std::optional<std::string> number_behind(std::string_view file, std::string_view prefix, std::size_t& index) {
  if (!file.starts_with(prefix)) return std::nullopt;
  index =
      static_cast<std::size_t>(std::strtoul(std::string(file.substr(prefix.size())).c_str(), nullptr, 10));
  return index < gid_table().size() ? std::optional(std::string()) : std::nullopt;
}

std::string gid_text(const ibv_gid& gid) {
  std::string text;
  for (int i = 0; i < 16; i += 2) {
    char group[6];
    std::snprintf(group, sizeof group, "%s%02x%02x", i ? ":" : "", gid.raw[i], gid.raw[i + 1]);
    text += group;
  }
  return text;
}

std::optional<std::string> device_file(std::string_view file) {
  static constexpr std::pair<std::string_view, std::string_view> fixed[] = {
      {"node_type", "1: CA"},
      {"fw_ver", "0.1.0"},
      {"board_id", "WEIR0000000001"},
      {"hca_type", "weir"},
      {"hw_rev", "1"},
      {"ports/1/link_layer", "Ethernet"},
      {"ports/1/state", "4: ACTIVE"},
      {"ports/1/pkeys/0", "0xffff"}};
  for (const auto& [name, text] : fixed)
    if (file == name) return std::string(text);
  std::size_t index = 0;
  if (number_behind(file, "ports/1/gid_attrs/types/", index)) return "RoCE v2";
  if (number_behind(file, "ports/1/gids/", index)) return gid_text(gid_table()[index].gid);
  return std::nullopt;
}

std::optional<std::string> real_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 4096> text;
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  if (got < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(got));
}

int copy_out(const std::optional<std::string>& text, char* buffer, std::size_t size) {
  if (!text || size == 0) return -1;
  std::size_t length = std::min(text->size(), size);
  std::memcpy(buffer, text->data(), length);
  if (length > 0 && buffer[length - 1] == '\n') --length;
  if (length < size)
    buffer[length] = 0;
  else
    buffer[--length] = 0;
  return static_cast<int>(length);
}

}  // namespace
}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

const char* ibv_get_sysfs_path() { return "/sys"; }

int ibv_read_sysfs_file(const char* dir, const char* file, char* buffer, size_t size) {
  const std::string_view directory(dir);
  const std::string_view own(device_sysfs_path);
  if (!directory.starts_with(own)) return copy_out(real_file(std::string(dir) + "/" + file), buffer, size);
  std::string inside(directory.substr(own.size()));
  inside += std::string("/") + file;
  return copy_out(device_file(std::string_view(inside).substr(1)), buffer, size);
}

int ibv_read_ibdev_sysfs_file(char* buffer, size_t size, ibv_device*, const char* format, ...) {
  char file[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(file, sizeof file, format, arguments);
  va_end(arguments);
  return copy_out(device_file(file), buffer, size);
}

}  // extern "C"
