// The C library's calls with which programs (`rdma`, of iproute2) ask the kernel for its RDMA devices.
//
// A program that opens a socket of NETLINK_RDMA gets one of NETLINK_USERSOCK, which every kernel has, to
// nobody: addresses, options, polling and receiving are then the kernel's own. What is sent through it is
// answered here, by a message to that socket from another of the kind.
//
// Entry points of other people's programs: signatures are the C library's, errno is the real call's.
#include <dlfcn.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/sysfs_files.hpp"
#include "verbs/view/rdma_netlink.hpp"

namespace {

template <class Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

// Set once this process has opened such a socket: until then no call costs anything.
std::atomic<bool> has_opened{false};

bool is_ours(int fd) {
  if (!has_opened.load(std::memory_order_relaxed)) return false;
  const int before = errno;
  int domain = 0, protocol = 0;
  socklen_t size = sizeof domain;
  const bool ours = ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK &&
                    ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
                    protocol == NETLINK_USERSOCK;
  errno = before;
  return ours;
}

std::vector<weir::verbs::ListedDevice> listed_devices() {
  using namespace weir::verbs;
  std::vector<ListedDevice> devices;
  const std::string interface = device_interface();
  for (std::size_t number = 0; number < device_options().devices.size(); ++number) {
    ListedDevice device{device_options().devices[number],
                        be64toh(device_guid(number)),
                        {},
                        ::if_nametoindex(interface.c_str()),
                        interface};
    for (const SysfsFile& file : device_files(number))
      if (file.path == "fw_ver") device.firmware = file.text;
    devices.push_back(std::move(device));
  }
  return devices;
}

// The number of a netlink socket, given now if it has none yet.
std::uint32_t number_of(int fd) {
  sockaddr_nl address{};
  socklen_t size = sizeof address;
  for (int attempt = 0; attempt < 2 && address.nl_pid == 0; ++attempt) {
    if (attempt == 1) {
      address = {};
      address.nl_family = AF_NETLINK;
      (void)::bind(fd, reinterpret_cast<const sockaddr*>(&address),
                   sizeof address);  // else it has no number: 0
    }
    size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  }
  return address.nl_pid;
}

ssize_t answer(int fd, const void* datagram, std::size_t bytes) {
  sockaddr_nl to{};
  to.nl_family = AF_NETLINK;
  to.nl_pid = number_of(fd);
  const auto message = weir::verbs::answer_rdma_netlink({static_cast<const std::byte*>(datagram), bytes},
                                                        to.nl_pid, listed_devices());
  if (!message.empty()) {
    static auto* const call =
        real<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)>("sendto");
    const int from = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
    if (from < 0) return -1;
    const ssize_t sent =
        call(from, message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    ::close(from);
    if (sent < 0) return -1;
  }
  return static_cast<ssize_t>(bytes);
}

}  // namespace

extern "C" {

int socket(int domain, int type, int protocol) {
  static auto* const call = real<int(int, int, int)>("socket");
  if (domain != AF_NETLINK || protocol != NETLINK_RDMA) return call(domain, type, protocol);
  has_opened = true;
  return call(domain, type, NETLINK_USERSOCK);
}

ssize_t sendto(int fd, const void* bytes, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  static auto* const call =
      real<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)>("sendto");
  return is_ours(fd) ? answer(fd, bytes, size) : call(fd, bytes, size, flags, to, to_size);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  static auto* const call = real<ssize_t(int, const void*, size_t, int)>("send");
  return is_ours(fd) ? answer(fd, bytes, size) : call(fd, bytes, size, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static auto* const call = real<ssize_t(int, const msghdr*, int)>("sendmsg");
  if (!is_ours(fd)) return call(fd, message, flags);
  std::vector<std::byte> whole;
  for (std::size_t index = 0; index < message->msg_iovlen; ++index) {
    const iovec& part = message->msg_iov[index];
    const auto* const first = static_cast<const std::byte*>(part.iov_base);
    whole.insert(whole.end(), first, first + part.iov_len);
  }
  return answer(fd, whole.data(), whole.size());
}

}  // extern "C"
