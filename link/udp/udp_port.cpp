#include "link/udp/udp_port.hpp"

#include <linux/sock_diag.h>
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
#include "link/udp/socket_address.hpp"
#include "wire/roce.hpp"

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

namespace weir::link {
namespace {

constexpr std::size_t batch_messages = 16;       // per recvmmsg
constexpr std::size_t message_bytes = 65'536;    // a batch that arrived as a whole
constexpr std::size_t control_bytes = 256;       // for the control messages that we ask for
constexpr std::size_t sent_control_bytes = 128;  // for those that we send
constexpr std::size_t runs_at_once = 16;         // per sendmmsg
constexpr std::size_t max_batches_at_once = 16;  // then receive() lets others have their turn

bool turn_on(int socket, int level, int option, int value = 1) {
  return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
}

// Receives only groups that this process joined, whatever other processes joined, and nothing sent from this
// host, whose processes reach each other without packets. For a socket of both families, the IPv6 option
// governs sending, and each family's own option governs receiving.
void set_up_groups(int socket, bool ipv6) {
  turn_on(socket, IPPROTO_IP, IP_MULTICAST_LOOP, 0);
  turn_on(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  if (!ipv6) return;
  turn_on(socket, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0);
  turn_on(socket, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
}

// The user who has the port, from the kernel's tables; nullopt: they show nobody.
std::optional<unsigned> user_of_port(std::uint16_t port) {
  for (const char* const table : {"/proc/self/net/udp", "/proc/self/net/udp6"}) {
    std::ifstream lines(table);
    std::string line;
    for (int i = 0; i < 65536 && std::getline(lines, line); ++i) {
      unsigned local = 0, uid = 0;
      const int read = std::sscanf(
          line.c_str(), " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %*x %*s %*s %*s %u", &local, &uid);
      if (read == 2 && local == port) return uid;
    }
  }
  return std::nullopt;
}

std::unexpected<Error> port_taken(std::uint16_t port) {
  std::string why = "cannot open UDP port " + std::to_string(port) + " for RDMA to other hosts: ";
  if (const auto user = UdpPort::other_user_of(port))
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

void take_source(const msghdr& message, UdpArrival& into) {
  const auto* const from = static_cast<const sockaddr*>(message.msg_name);
  if (from->sa_family == AF_INET) {
    const auto& v4 = *static_cast<const sockaddr_in*>(message.msg_name);
    into.source = ip_of(v4.sin_addr);
    into.source_port = ntohs(v4.sin_port);
  } else {
    const auto& v6 = *static_cast<const sockaddr_in6*>(message.msg_name);
    into.source = ip_of(v6.sin6_addr);
    into.source_port = ntohs(v6.sin6_port);
    into.interface = v6.sin6_scope_id;
  }
}

void take_control(const cmsghdr& control, UdpArrival& into, std::size_t& segment) {
  const auto is = [&](int level, int type) {
    return control.cmsg_level == level && control.cmsg_type == type;
  };
  if (is(IPPROTO_IP, IP_PKTINFO)) into.destination = ip_of(value_of<in_pktinfo>(control).ipi_addr);
  if (is(IPPROTO_IPV6, IPV6_PKTINFO)) into.destination = ip_of(value_of<in6_pktinfo>(control).ipi6_addr);
  if (is(IPPROTO_IP, IP_TOS)) into.traffic_class = value_of<std::uint8_t>(control);
  if (is(IPPROTO_IPV6, IPV6_TCLASS)) into.traffic_class = static_cast<std::uint8_t>(value_of<int>(control));
  if (is(IPPROTO_IP, IP_TTL) || is(IPPROTO_IPV6, IPV6_HOPLIMIT))
    into.hop_limit = static_cast<std::uint8_t>(value_of<int>(control));
  if (is(SOL_UDP, UDP_GRO)) segment = static_cast<std::size_t>(std::max(value_of<int>(control), 1));
}

// Cuts a received message into its segments again.
void cut_up(const msghdr& message, std::size_t bytes, std::vector<UdpArrival>& into) {
  UdpArrival whole;
  take_source(message, whole);
  std::size_t segment = bytes;
  for (const cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(control)))
    take_control(*control, whole, segment);
  const auto* const base = static_cast<const std::byte*>(message.msg_iov->iov_base);
  for (std::size_t at = 0; at < bytes; at += segment, ++whole.index) {
    whole.payload = {base + at, std::min(segment, bytes - at)};
    into.push_back(whole);
  }
}

}  // namespace

Result<std::unique_ptr<UdpPort>> UdpPort::open(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool ipv6 = static_cast<bool>(socket);
  if (!ipv6) socket.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failure_errno(errno, "cannot open a UDP socket for RDMA to other hosts");
  const int fd = socket.get();
  bool set =
      turn_on(fd, SOL_SOCKET, SO_REUSEPORT) && turn_on(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  if (ipv6)
    set = set && turn_on(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0) && turn_on(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO) &&
          turn_on(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
  else
    set = set && turn_on(fd, IPPROTO_IP, IP_PKTINFO);
  if (!set) return failure_errno(errno, "cannot set up the UDP socket for RDMA to other hosts");
  turn_on(fd, IPPROTO_IP, IP_RECVTOS);
  turn_on(fd, IPPROTO_IP, IP_RECVTTL);
  if (ipv6) {
    turn_on(fd, IPPROTO_IPV6, IPV6_RECVTCLASS);
    turn_on(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT);
    turn_on(fd, SOL_UDP, UDP_NO_CHECK6_RX);  // Soft-RoCE and NICs send no checksum; the ICRC covers more
  }
  turn_on(fd, SOL_UDP, UDP_GRO);
  set_up_groups(fd, ipv6);
  turn_on(fd, SOL_SOCKET, SO_RCVBUF, wanted_receive_bytes);
  turn_on(fd, SOL_SOCKET, SO_SNDBUF, wanted_receive_bytes);
  const SocketAddress any(ipv6, {}, port);
  if (::bind(fd, any.get(), any.bytes) != 0) {
    if (errno == EADDRINUSE) return port_taken(port);
    return failure_errno(errno, "cannot open UDP port " + std::to_string(port) + " for RDMA to other hosts");
  }
  return std::unique_ptr<UdpPort>(new UdpPort(std::move(socket), ipv6));
}

UdpPort::UdpPort(UniqueFd socket, bool ipv6)
    : socket_(std::move(socket)),
      ipv6_(ipv6),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(batch_messages * message_bytes)) {}

UdpPort::~UdpPort() = default;

// Sends the first runs in one call, as many as it takes: at least one. The error is that of the first run.
std::expected<std::size_t, int> UdpPort::send_some(const UdpRoute& route, std::span<const UdpRun> runs) {
  const bool v4 = is_v4(route.destination);
  if (is_v4(route.source) != v4 || (!v4 && !ipv6_)) return std::unexpected(EAFNOSUPPORT);
  SocketAddress to(ipv6_, route.destination, wire::roce_port, route.interface);
  const int level = v4 ? int{IPPROTO_IP} : int{IPPROTO_IPV6};
  alignas(cmsghdr) std::array<std::array<char, sent_control_bytes>, runs_at_once> controls;
  msghdr first{};
  first.msg_name = &to.storage;
  first.msg_namelen = to.bytes;
  first.msg_iovlen = 1;
  first.msg_control = controls[0].data();
  controls[0] = {};
  if (v4)
    put_control(first, level, IP_PKTINFO,
                in_pktinfo{static_cast<int>(route.interface), v4_of(route.source), {}});
  else
    put_control(first, level, IPV6_PKTINFO, in6_pktinfo{v6_of(route.source), route.interface});
  if (route.traffic_class != 0)
    put_control(first, level, v4 ? IP_TOS : IPV6_TCLASS, int{route.traffic_class});
  if (route.hop_limit != 0) put_control(first, level, v4 ? IP_TTL : IPV6_HOPLIMIT, int{route.hop_limit});

  std::array<iovec, runs_at_once> pieces;
  std::array<mmsghdr, runs_at_once> messages;
  const std::size_t count = std::min(runs.size(), runs_at_once);
  for (std::size_t i = count; i-- > 0;) {  // the first one last: its controls are the others' pattern
    pieces[i] = {const_cast<std::byte*>(runs[i].bytes.data()), runs[i].bytes.size()};
    messages[i] = {first, 0};
    if (i != 0) controls[i] = controls[0];
    messages[i].msg_hdr.msg_control = controls[i].data();
    messages[i].msg_hdr.msg_iov = &pieces[i];
    if (runs[i].bytes.size() > runs[i].segment)
      put_control(messages[i].msg_hdr, SOL_UDP, UDP_SEGMENT, runs[i].segment);
  }
  for (;;) {
    const int sent = ::sendmmsg(socket_.get(), messages.data(), static_cast<unsigned>(count), MSG_NOSIGNAL);
    if (sent > 0) return static_cast<std::size_t>(sent);
    if (errno != EINTR) return std::unexpected(errno);
  }
}

int UdpPort::send(const UdpRoute& route, std::span<const UdpRun> runs, std::span<bool> went) {
  std::ranges::fill(went, false);
  for (std::size_t done = 0; done < runs.size();) {
    const auto sent = send_some(route, runs.subspan(done));
    if (sent) {
      for (const std::size_t end = done + *sent; done < end; ++done)
        if (done < went.size()) went[done] = true;
      continue;
    }
    const int error = sent.error();
    const UdpRun& refused = runs[done++];
    if (error == EAGAIN || error == ENOBUFS) continue;
    // The path cannot segment runs: a device without checksums (EIO), or a kernel before 4.18 (EINVAL).
    const bool batch = refused.bytes.size() > refused.segment;
    if (batch && (error == EIO || error == EINVAL)) cuts_runs_.store(false, std::memory_order_relaxed);
    return error;
  }
  return 0;
}

std::uint64_t UdpPort::not_received() const {
  std::array<std::uint32_t, SK_MEMINFO_VARS> facts{};
  socklen_t bytes = sizeof facts;
  const bool known = ::getsockopt(socket_.get(), SOL_SOCKET, SO_MEMINFO, facts.data(), &bytes) == 0;
  return known ? facts[SK_MEMINFO_DROPS] : 0;
}

int UdpPort::change_membership(const IpAddress& group, std::uint32_t interface, int v4_option,
                               int v6_option) {
  if (is_v4(group)) {
    const ip_mreqn membership{v4_of(group), {}, static_cast<int>(interface)};
    return ::setsockopt(socket_.get(), IPPROTO_IP, v4_option, &membership, sizeof membership) == 0 ? 0
                                                                                                   : errno;
  }
  if (!ipv6_) return EAFNOSUPPORT;
  const ipv6_mreq membership{v6_of(group), interface};
  return ::setsockopt(socket_.get(), IPPROTO_IPV6, v6_option, &membership, sizeof membership) == 0 ? 0
                                                                                                   : errno;
}

int UdpPort::join(const IpAddress& group, std::uint32_t interface) {
  return change_membership(group, interface, IP_ADD_MEMBERSHIP, IPV6_JOIN_GROUP);
}

int UdpPort::leave(const IpAddress& group, std::uint32_t interface) {
  return change_membership(group, interface, IP_DROP_MEMBERSHIP, IPV6_LEAVE_GROUP);
}

// A connected socket takes datagrams from its peer alone, and of those that share a port the kernel chooses
// among the others. Nothing ever comes from that peer.
void UdpPort::turn_arrivals_away() {
  constexpr std::uint16_t discard = 9;
  const SocketAddress nobody(ipv6_, ip_of(in_addr{htonl(INADDR_LOOPBACK)}), discard);
  (void)::connect(socket_.get(), nobody.get(), nobody.bytes);
}

std::optional<unsigned> UdpPort::other_user_of(std::uint16_t port) {
  const auto user = user_of_port(port);
  return user && *user != ::geteuid() ? user : std::nullopt;
}

int UdpPort::way_to(const UdpRoute& route) {
  const bool ipv6 = !is_v4(route.destination);
  if (is_v4(route.source) == ipv6) return EAFNOSUPPORT;
  const UniqueFd probe(::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return errno;
  const SocketAddress from(ipv6, route.source, 0, route.interface),
      to(ipv6, route.destination, wire::roce_port, route.interface);
  if (::bind(probe.get(), from.get(), from.bytes) != 0) return errno;
  return ::connect(probe.get(), to.get(), to.bytes) == 0 ? 0 : errno;
}

void UdpPort::receive(const Handler& handler) {
  const std::unique_lock alone(receiving_, std::try_to_lock);
  if (!alone || !socket_) return;
  std::array<mmsghdr, batch_messages> messages{};
  std::array<iovec, batch_messages> pieces{};
  std::array<sockaddr_in6, batch_messages> sources{};  // the longer of the two address types
  alignas(cmsghdr) std::array<std::array<char, control_bytes>, batch_messages> controls;
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
    arrived_.clear();
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i)
      if (!(messages[i].msg_hdr.msg_flags & MSG_TRUNC))
        cut_up(messages[i].msg_hdr, messages[i].msg_len, arrived_);
    handler(arrived_);
    if (static_cast<std::size_t>(got) < batch_messages) break;
  }
}

}  // namespace weir::link
