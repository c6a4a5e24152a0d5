#include "cli/weir/host_port.hpp"

#include <optional>
#include <utility>

#include "transport/host_port.hpp"

namespace weir::command {

std::expected<HostPort, std::string> read_host_port(std::string_view text) {
  std::optional<transport::HostPort> read = transport::parse_host_port(text);
  if (!read || !read->port)
    return std::unexpected("wants host:port with a port of 0 to 65535, like 127.0.0.1:9105, not '" +
                           std::string(text) + "'");
  return HostPort{std::move(read->host), *read->port};
}

}  // namespace weir::command
