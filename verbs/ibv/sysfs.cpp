// Answers what programs ask libibverbs about a device's files. There is no kernel device, only a list.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/private_nodes.hpp"
#include "verbs/ibv/sysfs_counters.hpp"
#include "verbs/ibv/sysfs_files.hpp"

namespace weir::verbs {

namespace {

constexpr std::string_view class_path = "/sys/class/infiniband/";

std::optional<std::string> device_file(std::size_t device, std::string_view path) {
  constexpr std::string_view port = "ports/1/";
  if (path.starts_with(port)) {
    if (const SysfsCounter* counter = find_sysfs_counter(path.substr(port.size()))) {
      CountersSeen counted{};
      if (weir_monitor_port(sizeof counted, &counted) != 0) return std::nullopt;
      return std::to_string(counter->of(counted));
    }
  }
  for (SysfsFile& file : device_files(device))
    if (file.path == path) return std::move(file.text);
  return std::nullopt;
}

// The device whose directory contains that path; leaves the rest of the path in `path`.
std::optional<std::size_t> device_of(std::string_view& path) {
  if (!path.starts_with(class_path)) return std::nullopt;
  const std::string_view inside = path.substr(class_path.size());
  const std::string_view name = inside.substr(0, inside.find('/'));
  const auto& names = device_options().devices;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  path = inside.substr(name.size());
  return static_cast<std::size_t>(found - names.begin());
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
  std::string_view directory(dir);
  const auto device = device_of(directory);
  if (!device) return copy_out(real_file(std::string(dir) + "/" + file), buffer, size);
  const std::string inside = std::string(directory) + "/" + file;
  return copy_out(device_file(*device, std::string_view(inside).substr(1)), buffer, size);
}

int ibv_read_ibdev_sysfs_file(char* buffer, size_t size, ibv_device* device, const char* format, ...) {
  char file[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(file, sizeof file, format, arguments);
  va_end(arguments);
  return copy_out(device_file(index_of(*device), file), buffer, size);
}
WEIR_IN_OTHER_PRIVATE_NODES(ibv_read_ibdev_sysfs_file)

}  // extern "C"
