#include "link/abstract_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace weir::link {
namespace {

struct AbstractAddress {
  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    const std::size_t room = sizeof address.sun_path - 1;
    const std::size_t length = name.size() < room ? name.size() : room;
    std::memcpy(address.sun_path + 1, name.data(), length);  // after a zero byte: an abstract name
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t bytes = 0;
};

UniqueFd seqpacket_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

std::expected<UniqueFd, int> hold_name(const std::string& name) {
  UniqueFd socket = seqpacket_socket();
  const AbstractAddress address(name);
  if (!socket || ::bind(socket.get(), address.get(), address.bytes) != 0) return std::unexpected(errno);
  return socket;
}

std::expected<UniqueFd, int> connect_to_name(const std::string& name) {
  UniqueFd socket = seqpacket_socket();
  const AbstractAddress address(name);
  if (!socket || ::connect(socket.get(), address.get(), address.bytes) != 0) return std::unexpected(errno);
  return socket;
}

std::string name_of_slot(unsigned slot) { return "weir-slot-" + std::to_string(slot); }

std::expected<Identity, int> identity_of_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::unexpected(errno);
  return Identity{peer.uid, peer.pid};
}

bool same_process(const Identity& one, const Identity& other) {
  if (one.pid != 0 && other.pid != 0) return one.pid == other.pid;
  return one.user == other.user && one.user != nobody_known;
}

}  // namespace weir::link
