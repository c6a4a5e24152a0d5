#include "link/frame.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "link/not_cancelled.hpp"

namespace weir::link {

std::vector<std::byte> encode_frame(FrameType type, std::uint16_t kind, std::uint64_t request,
                                    std::span<const std::byte> body, std::size_t fd_count) {
  const FrameHeader header{.magic = frame_magic,
                           .version = frame_version,
                           .type = type,
                           .kind = kind,
                           .body_bytes = static_cast<std::uint32_t>(body.size()),
                           .fd_count = static_cast<std::uint16_t>(fd_count),
                           .zero = 0,
                           .request = request};
  std::vector<std::byte> packet(sizeof header + body.size());
  std::memcpy(packet.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(packet.data() + sizeof header, body.data(), body.size());
  return packet;
}

std::optional<Frame> parse_frame(std::span<const std::byte> packet, std::vector<UniqueFd> fds) {
  FrameHeader header;
  if (packet.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, packet.data(), sizeof header);
  const auto body = packet.subspan(sizeof header);
  if (header.magic != frame_magic || header.version != frame_version || header.zero != 0) return std::nullopt;
  if (header.type < FrameType::hello || header.type > last_frame_type) return std::nullopt;
  if (header.body_bytes != body.size() || header.fd_count != fds.size()) return std::nullopt;
  const auto limit = header.type == FrameType::hello ? max_body_bytes : max_message_bytes;
  if (body.size() > limit) return std::nullopt;
  const bool answers = header.type == FrameType::reply || header.type == FrameType::no_handler;
  if (answers && header.request == 0) return std::nullopt;
  return Frame{header.type, header.kind, header.request, {body.begin(), body.end()}, std::move(fds)};
}

std::optional<HelloView> parse_hello(std::span<const std::byte> body) {
  HelloView hello{};
  if (body.size() < sizeof hello.prefix) return std::nullopt;
  std::memcpy(&hello.prefix, body.data(), sizeof hello.prefix);
  if (hello.prefix.slot == 0 || hello.prefix.slot >= max_slots) return std::nullopt;
  hello.greeting = body.subspan(sizeof hello.prefix);
  return hello;
}

namespace {

// Descriptors are missing: the peer sent more than are legal, or more than this process may still open. In
// the second case the message is good, and a receiver that expects a descriptor must do without it. A hello
// is useless without its descriptors.
std::optional<Frame> parse_without_descriptors(std::span<const std::byte> packet) {
  FrameHeader header;
  if (packet.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, packet.data(), sizeof header);
  if (header.type == FrameType::hello || header.fd_count == 0 || header.fd_count > max_message_fds)
    return std::nullopt;
  header.fd_count = 0;
  std::vector<std::byte> changed(packet.begin(), packet.end());
  std::memcpy(changed.data(), &header, sizeof header);
  return parse_frame(changed, {});
}

std::vector<UniqueFd> take_descriptors(msghdr& header) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

Received receive_frame(int socket) {
  std::byte packet[max_frame_bytes];
  alignas(cmsghdr) char control[CMSG_SPACE(max_message_fds * sizeof(int))];
  iovec vector{.iov_base = packet, .iov_len = sizeof packet};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  bool reset_seen = false;
  for (;;) {
    got = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got >= 0) break;
    // If a peer closed with unread data, the kernel reports that once, before the frames that the peer sent.
    const bool first_reset = errno == ECONNRESET && !std::exchange(reset_seen, true);
    if (errno != EINTR && !first_reset) break;
  }
  if (got < 0) return errno == EAGAIN ? Received{WouldBlock{}} : Received{Ended{}};
  auto fds = take_descriptors(header);
  // An empty packet and the end of the connection look alike; neither is a frame.
  if (got == 0 && fds.empty()) return Ended{};
  if ((header.msg_flags & MSG_TRUNC) != 0) return Malformed{};
  const std::span<const std::byte> bytes(packet, static_cast<std::size_t>(got));
  auto frame = (header.msg_flags & MSG_CTRUNC) != 0 ? parse_without_descriptors(bytes)
                                                    : parse_frame(bytes, std::move(fds));
  if (!frame) return Malformed{};
  return std::move(*frame);
}

int transmit_frame(int socket, std::span<const std::byte> packet, std::span<const int> fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(max_message_fds * sizeof(int))] = {};
  iovec vector{.iov_base = const_cast<std::byte*>(packet.data()), .iov_len = packet.size()};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  const NotCancelled whole;
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

}  // namespace weir::link
