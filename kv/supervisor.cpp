#include "kv/supervisor.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "transport/owned_fd.hpp"

namespace weir::kv {

void notify_supervisor(const std::string& socket, std::string_view state) {
  sockaddr_un address{};
  if (socket.empty() || socket.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  if (socket[0] == '@') address.sun_path[0] = '\0';
  const OwnedFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
           size);
}

}  // namespace weir::kv
