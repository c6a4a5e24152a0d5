#include "link/udp/udp_port.hpp"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "link/error.hpp"
#include "wire/roce.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace weir::link {
namespace {

constexpr std::size_t batch_messages = 16;       // of one recvmmsg
constexpr std::size_t message_bytes = 65'536;    // a batch that came whole
constexpr std::size_t control_bytes = 256;       // of the control messages that were asked for
constexpr std::size_t max_batches_at_once = 16;  // before a receive() gives others their turn

std::optional<in_addr> v4_of(const IpAddress& ip) {
  constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (!std::equal(mapped.begin(), mapped.end(), ip.begin())) return std::nullopt;
  in_addr address{};
  std::memcpy(&address, ip.data() + 12, sizeof address);
  return address;
}

IpAddress ip_of(const in_addr& address) {
  IpAddress ip{};
  ip[10] = ip[11] = 0xff;
  std::memcpy(ip.data() + 12, &address, sizeof address);
  return ip;
}

bool turn_on(int socket, int level, int option, int value = 1) {
  return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
}

// Who has the port, by the kernel's table; nullopt: nobody whom it shows.
std::optional<unsigned> user_of_port(std::uint16_t port) {
  std::ifstream lines("/proc/self/net/udp");
  std::string line;
  for (int i = 0; i < 65536 && std::getline(lines, line); ++i) {
    unsigned local = 0, uid = 0;
    const int read = std::sscanf(line.c_str(), " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %*x %*s %*s %*s %u",
                                 &local, &uid);
    if (read == 2 && local == port) return uid;
  }
  return std::nullopt;
}

std::unexpected<Error> port_taken(std::uint16_t port) {
  std::string why = "cannot open UDP port " + std::to_string(port) + " for RDMA to other hosts: ";
  const auto user = user_of_port(port);
  if (user && *user != ::geteuid())
    why += "a program of user " + std::to_string(*user) +
           " has it, and processes share it within one user only; run both as one user";
  else
    why +=
        "it is taken, by a program that does not share it or by the kernel's rdma_rxe: end that program, "
        "take "
        "rdma_rxe down (rdma link delete), or run in a network namespace of your own";
  return failure(std::errc::address_in_use, std::move(why));
}

template <class T>
void put_control(msghdr& message, int level, int type, const T& value) {
  auto* const at =
      reinterpret_cast<cmsghdr*>(static_cast<char*>(message.msg_control) + message.msg_controllen);
  at->cmsg_level = level;
  at->cmsg_type = type;
  at->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(at), &value, sizeof value);
  message.msg_controllen += CMSG_SPACE(sizeof value);
}

template <class T>
T value_of(const cmsghdr& control) {
  T value{};
  std::memcpy(&value, CMSG_DATA(&control), sizeof value);
  return value;
}

// A message as it came, cut up again.
void cut_up(const msghdr& message, std::size_t bytes, std::vector<UdpArrival>& into) {
  UdpArrival whole;
  const auto& from = *static_cast<const sockaddr_in*>(message.msg_name);
  whole.source = ip_of(from.sin_addr);
  whole.source_port = ntohs(from.sin_port);
  std::size_t segment = bytes;
  for (const cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(control))) {
    if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO)
      whole.destination = ip_of(value_of<in_pktinfo>(*control).ipi_addr);
    if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS)
      whole.traffic_class = value_of<std::uint8_t>(*control);
    if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO)
      segment = static_cast<std::size_t>(std::max(value_of<int>(*control), 1));
  }
  const auto* const base = static_cast<const std::byte*>(message.msg_iov->iov_base);
  for (std::size_t at = 0; at < bytes; at += segment, ++whole.index) {
    whole.payload = {base + at, std::min(segment, bytes - at)};
    into.push_back(whole);
  }
}

}  // namespace

Result<std::unique_ptr<UdpPort>> UdpPort::open(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failure_errno(errno, "cannot open a UDP socket for RDMA to other hosts");
  const int fd = socket.get();
  const bool shared = turn_on(fd, SOL_SOCKET, SO_REUSEPORT) && turn_on(fd, IPPROTO_IP, IP_PKTINFO) &&
                      turn_on(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  if (!shared) return failure_errno(errno, "cannot set up the UDP socket for RDMA to other hosts");
  turn_on(fd, IPPROTO_IP, IP_RECVTOS);
  turn_on(fd, SOL_UDP, UDP_GRO);
  turn_on(fd, SOL_SOCKET, SO_RCVBUF, wanted_receive_bytes);
  turn_on(fd, SOL_SOCKET, SO_SNDBUF, wanted_receive_bytes);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) {
    if (errno == EADDRINUSE) return port_taken(port);
    return failure_errno(errno, "cannot open UDP port " + std::to_string(port) + " for RDMA to other hosts");
  }
  return std::unique_ptr<UdpPort>(new UdpPort(std::move(socket)));
}

UdpPort::UdpPort(UniqueFd socket)
    : socket_(std::move(socket)),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(batch_messages * message_bytes)) {}

UdpPort::~UdpPort() = default;

int UdpPort::send_run(const UdpRoute& route, const UdpRun& run) {
  const auto source = v4_of(route.source), destination = v4_of(route.destination);
  if (!source || !destination) return EAFNOSUPPORT;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(wire::roce_port);
  to.sin_addr = *destination;
  alignas(cmsghdr) std::array<char, control_bytes> control{};
  iovec piece{const_cast<std::byte*>(run.bytes.data()), run.bytes.size()};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  in_pktinfo from{};
  from.ipi_spec_dst = *source;
  put_control(message, IPPROTO_IP, IP_PKTINFO, from);
  if (route.traffic_class != 0) put_control(message, IPPROTO_IP, IP_TOS, int{route.traffic_class});
  if (route.hop_limit != 0) put_control(message, IPPROTO_IP, IP_TTL, int{route.hop_limit});
  if (run.bytes.size() > run.segment) put_control(message, SOL_UDP, UDP_SEGMENT, run.segment);
  for (;;) {
    if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

int UdpPort::send(const UdpRoute& route, std::span<const UdpRun> runs) {
  for (const UdpRun& run : runs) {
    const bool batch = run.bytes.size() > run.segment;
    const int error = send_run(route, run);
    if (error == 0 || error == EAGAIN || error == ENOBUFS) continue;
    // What the way there cannot cut up: a device without checksums (EIO), a kernel before 4.18 (EINVAL).
    if (batch && (error == EIO || error == EINVAL)) cuts_runs_.store(false, std::memory_order_relaxed);
    return error;
  }
  return 0;
}

int UdpPort::way_to(const UdpRoute& route) {
  const auto source = v4_of(route.source), destination = v4_of(route.destination);
  if (!source || !destination) return EAFNOSUPPORT;
  const UniqueFd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return errno;
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  from.sin_addr = *source;
  to.sin_addr = *destination;
  to.sin_port = htons(wire::roce_port);
  if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) return errno;
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
}

void UdpPort::receive(const Handler& handler) {
  const std::unique_lock alone(receiving_, std::try_to_lock);
  if (!alone || !socket_) return;
  std::array<mmsghdr, batch_messages> messages{};
  std::array<iovec, batch_messages> pieces{};
  std::array<sockaddr_in, batch_messages> sources{};
  alignas(cmsghdr) std::array<std::array<char, control_bytes>, batch_messages> controls;
  thread_local std::vector<UdpArrival> arrived;
  for (std::size_t batches = 0; batches < max_batches_at_once; ++batches) {
    for (std::size_t i = 0; i < batch_messages; ++i) {
      pieces[i] = {buffer_.get() + i * message_bytes, message_bytes};
      msghdr& header = messages[i].msg_hdr;
      header.msg_name = &sources[i];
      header.msg_namelen = sizeof sources[i];
      header.msg_iov = &pieces[i];
      header.msg_iovlen = 1;
      header.msg_control = controls[i].data();
      header.msg_controllen = control_bytes;
    }
    const int got = ::recvmmsg(socket_.get(), messages.data(), batch_messages, MSG_DONTWAIT, nullptr);
    if (got <= 0) break;
    arrived.clear();
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i)
      if (!(messages[i].msg_hdr.msg_flags & MSG_TRUNC))
        cut_up(messages[i].msg_hdr, messages[i].msg_len, arrived);
    handler(arrived);
    if (static_cast<std::size_t>(got) < batch_messages) break;
  }
}

}  // namespace weir::link
