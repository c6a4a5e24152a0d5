// rdma_getaddrinfo: resolves names with the host's resolver and returns them in RDMA's form.
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "verbs/cm/endpoint.hpp"

namespace {

struct FreeInfo {
  void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
};
using InfoPtr = std::unique_ptr<rdma_addrinfo, FreeInfo>;
struct FreeResolved {
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};

// Every part of an rdma_addrinfo is malloc'd by itself, because rdma_freeaddrinfo and C
// applications free it that way.
bool copy_address(const sockaddr* from, socklen_t size, sockaddr*& to, socklen_t& to_size) {
  if (from == nullptr || size == 0) return true;
  to = static_cast<sockaddr*>(std::malloc(size));
  if (to == nullptr) return false;
  std::memcpy(to, from, size);
  to_size = size;
  return true;
}

// Derives the queue pair type or the port space from the other one. Default: reliable connections.
void choose_service(const rdma_addrinfo* hints, rdma_addrinfo& info) {
  const int type = hints != nullptr ? hints->ai_qp_type : 0;
  const int space = hints != nullptr ? hints->ai_port_space : 0;
  const bool datagram = type == IBV_QPT_UD || (type == 0 && (space == RDMA_PS_UDP || space == RDMA_PS_IPOIB));
  info.ai_qp_type = type != 0 ? type : datagram ? IBV_QPT_UD : IBV_QPT_RC;
  info.ai_port_space = space != 0 ? space : datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
}

int host_family(const rdma_addrinfo* hints) {
  if (hints == nullptr || (hints->ai_flags & RAI_FAMILY) == 0) return AF_UNSPEC;
  return hints->ai_family;
}

// Returns 0 or the result of rdma_getaddrinfo: EAI_* codes pass through, as in the original.
int resolve_name(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo& info) {
  addrinfo wanted{};
  wanted.ai_family = host_family(hints);
  wanted.ai_socktype = info.ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM;
  if ((info.ai_flags & RAI_PASSIVE) != 0) wanted.ai_flags |= AI_PASSIVE;
  if ((info.ai_flags & RAI_NUMERICHOST) != 0) wanted.ai_flags |= AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(node, service, &wanted, &found); error != 0) return error;
  const std::unique_ptr<addrinfo, FreeResolved> owned(found);
  const bool passive = (info.ai_flags & RAI_PASSIVE) != 0;
  info.ai_family = found->ai_family;
  const bool copied =
      passive ? copy_address(found->ai_addr, found->ai_addrlen, info.ai_src_addr, info.ai_src_len)
              : copy_address(found->ai_addr, found->ai_addrlen, info.ai_dst_addr, info.ai_dst_len);
  return copied ? 0 : EAI_MEMORY;
}

bool is_loopback(const sockaddr* address) {
  const auto endpoint = weir::cm::endpoint_of(address);
  return endpoint && endpoint->is_loopback();
}

// An address of that family by which other hosts may reach this one.
std::optional<weir::cm::Endpoint> address_for_others(int family) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(all, ::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family || (one->ifa_flags & IFF_UP) == 0)
      continue;
    const auto endpoint = weir::cm::endpoint_of(one->ifa_addr);
    if (endpoint && !endpoint->is_loopback() && endpoint->scope_id == 0) return endpoint;
  }
  return std::nullopt;
}

// "localhost" without a port, to listen at, is libfabric's question for the address of a card. A card has no
// loopback, and libfabric gives the answer to other hosts as its own. Who names 127.0.0.1 means it.
void leave_loopback(rdma_addrinfo& info) {
  if (info.ai_src_addr == nullptr || !is_loopback(info.ai_src_addr)) return;
  const auto reachable = address_for_others(info.ai_src_addr->sa_family);
  if (!reachable) return;
  sockaddr_storage stored{};
  weir::cm::store(*reachable, stored);
  std::memcpy(info.ai_src_addr, &stored, info.ai_src_len);
}

bool copy_hinted_addresses(const rdma_addrinfo& hints, rdma_addrinfo& info) {
  if (info.ai_src_addr == nullptr &&
      !copy_address(hints.ai_src_addr, hints.ai_src_len, info.ai_src_addr, info.ai_src_len)) {
    return false;
  }
  if (info.ai_dst_addr == nullptr &&
      !copy_address(hints.ai_dst_addr, hints.ai_dst_len, info.ai_dst_addr, info.ai_dst_len)) {
    return false;
  }
  const sockaddr* any = info.ai_src_addr != nullptr ? info.ai_src_addr : info.ai_dst_addr;
  if (info.ai_family == 0 && any != nullptr) info.ai_family = any->sa_family;
  return true;
}

}  // namespace

extern "C" {

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                     rdma_addrinfo** result) {
  const bool addressed = hints != nullptr && (hints->ai_src_len != 0 || hints->ai_dst_len != 0);
  if (result == nullptr || (node == nullptr && service == nullptr && hints == nullptr)) {
    errno = EINVAL;
    return -1;
  }
  InfoPtr info(static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo))));
  if (!info) return EAI_MEMORY;
  if (hints != nullptr) info->ai_flags = hints->ai_flags;
  choose_service(hints, *info);
  if (node != nullptr || service != nullptr) {
    if (const int error = resolve_name(node, service, hints, *info); error != 0) return error;
    if (service == nullptr && !addressed && std::strcmp(node, "localhost") == 0) leave_loopback(*info);
  } else if (!addressed && (info->ai_flags & RAI_PASSIVE) != 0) {
    if (const int error = resolve_name(nullptr, "0", hints, *info); error != 0) return error;
  }
  if (addressed && !copy_hinted_addresses(*hints, *info)) return EAI_MEMORY;
  *result = info.release();
  return 0;
}

void rdma_freeaddrinfo(rdma_addrinfo* info) {
  while (info != nullptr) {
    rdma_addrinfo* next = info->ai_next;
    std::free(info->ai_src_addr);
    std::free(info->ai_dst_addr);
    std::free(info->ai_src_canonname);
    std::free(info->ai_dst_canonname);
    std::free(info->ai_route);
    std::free(info->ai_connect);
    std::free(info);
    info = next;
  }
}

}  // extern "C"
