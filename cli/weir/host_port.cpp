#include "cli/weir/host_port.hpp"

#include <charconv>

namespace weir::command {

std::expected<HostPort, std::string> read_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  HostPort read;
  bool good = colon != std::string_view::npos;
  if (good) {
    const char* const end = text.data() + text.size();
    const auto number = std::from_chars(text.data() + colon + 1, end, read.port);
    good = number.ec == std::errc{} && number.ptr == end;
  }
  if (!good)
    return std::unexpected("wants host:port with a port of 0 to 65535, like 127.0.0.1:9105, not '" +
                           std::string(text) + "'");
  read.host = text.substr(0, colon);
  if (read.host.starts_with('[') && read.host.ends_with(']'))
    read.host = read.host.substr(1, read.host.size() - 2);
  return read;
}

}  // namespace weir::command
