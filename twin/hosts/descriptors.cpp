#include "twin/hosts/descriptors.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

namespace weir::hosts {
namespace {

constexpr std::size_t max_message_bytes = 256 * 1024;  // a listing of the most hosts there can be

}  // namespace

bool send_with_descriptors(int socket, std::string_view text, std::span<const int> descriptors) {
  iovec bytes{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::ranges::copy(descriptors, reinterpret_cast<int*>(CMSG_DATA(header)));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

Result<Message> receive_with_descriptors(int socket) {
  Message received;
  received.text.resize(max_message_bytes);
  iovec bytes{received.text.data(), received.text.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t count = 0;
  do count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  if (count < 0) return failure_errno(errno, "the keeper of the network does not answer");
  received.text.resize(static_cast<std::size_t>(count));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::span numbers(reinterpret_cast<const int*>(CMSG_DATA(header)),
                            (header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    for (const int fd : numbers) received.descriptors.emplace_back(fd);
  }
  return received;
}

}  // namespace weir::hosts
