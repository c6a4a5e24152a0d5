#include "verbs/rsocket/options.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "verbs/rsocket/stream_wire.hpp"

namespace weir::rsocket {
namespace {

constexpr std::uint32_t least_buffer = 4096;
constexpr std::uint32_t most_buffer = 1U << 28;
constexpr int least_queue = 16;
constexpr int most_queue = 16384;
constexpr int most_inline = 1024;
constexpr std::uint32_t most_polling_us = 1'000'000;
constexpr std::size_t most_route_bytes = 4096;

std::uint32_t buffer_bytes(std::uint64_t wanted) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, least_buffer, most_buffer)) & ~1U;
}
std::uint16_t queue_entries(std::int64_t wanted) {
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(wanted, least_queue, most_queue));
}
std::uint32_t inline_limit(std::int64_t wanted) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(wanted, 0, most_inline));
}
std::uint32_t iomap_limit(std::int64_t wanted) {
  return from_scale(
      to_scale(static_cast<std::uint32_t>(std::clamp<std::int64_t>(wanted, 0, max_iomap_entries))));
}

std::optional<int> int_of(const void* value, socklen_t size) {
  if (value == nullptr || size < sizeof(int)) return std::nullopt;
  int number;
  std::memcpy(&number, value, sizeof number);
  return number;
}

// As getsockopt: what fits is copied, and the size says how much that was.
int give(const void* from, std::size_t bytes, void* value, socklen_t* size) {
  if (value == nullptr || size == nullptr) return EFAULT;
  *size = static_cast<socklen_t>(std::min<std::size_t>(*size, bytes));
  std::memcpy(value, from, *size);
  return 0;
}
int give_int(std::int64_t number, void* value, socklen_t* size) {
  const int narrow = static_cast<int>(number);
  return give(&narrow, sizeof narrow, value, size);
}

int set_socket(Options& options, int name, const void* value, socklen_t size, bool connected) {
  if (name == SO_LINGER) {
    if (value == nullptr || size < sizeof options.lingering) return EINVAL;
    std::memcpy(&options.lingering, value, sizeof options.lingering);
    return 0;
  }
  const auto number = int_of(value, size);
  if (!number) return EINVAL;
  switch (name) {
    case SO_REUSEADDR:
      options.reuse_address = *number != 0;
      return 0;
    // Asked for by many, needed by few: where a second listener does bind the port, bind() refuses it.
    case SO_REUSEPORT:
      options.reuse_port = *number != 0;
      return 0;
    case SO_KEEPALIVE:  // a reliable connection notices by itself
      options.keep_alive = *number != 0;
      return 0;
    case SO_OOBINLINE:
      options.out_of_band_inline = *number != 0;
      return 0;
    // socket(7): the kernel doubles what it is asked for, and reports that. A connected socket keeps what it
    // has.
    case SO_RCVBUF:
      if (!connected) options.receive_bytes = buffer_bytes(2ULL * static_cast<unsigned>(*number));
      return 0;
    case SO_SNDBUF:
      if (!connected) options.send_bytes = buffer_bytes(2ULL * static_cast<unsigned>(*number));
      return 0;
    default:
      return ENOPROTOOPT;
  }
}

int get_socket(const Options& options, int name, void* value, socklen_t* size) {
  switch (name) {
    case SO_REUSEADDR:
      return give_int(options.reuse_address, value, size);
    case SO_REUSEPORT:
      return give_int(options.reuse_port, value, size);
    case SO_KEEPALIVE:
      return give_int(options.keep_alive, value, size);
    case SO_OOBINLINE:
      return give_int(options.out_of_band_inline, value, size);
    case SO_RCVBUF:
      return give_int(options.receive_bytes, value, size);
    case SO_SNDBUF:
      return give_int(options.send_bytes, value, size);
    case SO_LINGER:
      return give(&options.lingering, sizeof options.lingering, value, size);
    default:
      return ENOPROTOOPT;
  }
}

int set_tcp(Options& options, int name, const void* value, socklen_t size) {
  const auto number = int_of(value, size);
  if (!number) return EINVAL;
  switch (name) {
    case TCP_NODELAY:  // nothing is ever held back
      options.no_delay = *number != 0;
      return 0;
    case TCP_KEEPIDLE:
      if (*number <= 0) return EINVAL;
      options.keep_idle_s = *number;
      return 0;
    case TCP_KEEPCNT:
    case TCP_KEEPINTVL:
    case TCP_MAXSEG:
      return 0;
    default:
      return ENOPROTOOPT;
  }
}

int get_tcp(const Options& options, int name, void* value, socklen_t* size) {
  switch (name) {
    case TCP_NODELAY:
      return give_int(options.no_delay, value, size);
    case TCP_KEEPIDLE:
      return give_int(options.keep_idle_s, value, size);
    case TCP_KEEPCNT:
    case TCP_KEEPINTVL:
      return give_int(1, value, size);
    case TCP_MAXSEG:
      return give_int(4096, value, size);  // the path's MTU
    default:
      return ENOPROTOOPT;
  }
}

int set_rdma(Options& options, int name, const void* value, socklen_t size, bool connected) {
  if (connected) return EINVAL;
  if (name == RDMA_ROUTE) {
    if (value == nullptr || size > most_route_bytes) return EINVAL;
    const auto* bytes = static_cast<const std::byte*>(value);
    options.route.assign(bytes, bytes + size);
    return 0;
  }
  const auto number = int_of(value, size);
  if (!number) return EINVAL;
  switch (name) {
    case RDMA_SQSIZE:
      options.send_queue = queue_entries(*number);
      return 0;
    case RDMA_RQSIZE:
      options.receive_queue = queue_entries(*number);
      return 0;
    case RDMA_INLINE:
      options.inline_bytes = inline_limit(*number);
      return 0;
    case RDMA_IOMAPSIZE:
      options.iomap_entries = iomap_limit(*number);
      return 0;
    default:
      return ENOPROTOOPT;
  }
}

int get_rdma(const Options& options, int name, void* value, socklen_t* size) {
  switch (name) {
    case RDMA_SQSIZE:
      return give_int(options.send_queue, value, size);
    case RDMA_RQSIZE:
      return give_int(options.receive_queue, value, size);
    case RDMA_INLINE:
      return give_int(options.inline_bytes, value, size);
    case RDMA_IOMAPSIZE:
      return give_int(options.iomap_entries, value, size);
    case RDMA_ROUTE:
      if (size != nullptr && *size < options.route.size()) return EINVAL;
      return give(options.route.data(), options.route.size(), value, size);
    default:
      return ENOPROTOOPT;
  }
}

std::optional<std::uint32_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (!(file >> number) || number < 0 || number > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

}  // namespace

const Defaults& Defaults::get() {
  static const Defaults defaults = read("/etc/rdma/rsocket");
  return defaults;
}

Defaults Defaults::read(const char* folder) {
  Defaults read;
  const std::string at = std::string(folder) + "/";
  if (const auto bytes = number_in(at + "mem_default")) read.receive_bytes = buffer_bytes(*bytes);
  if (const auto bytes = number_in(at + "wmem_default")) read.send_bytes = buffer_bytes(*bytes);
  if (const auto entries = number_in(at + "sqsize_default")) read.send_queue = queue_entries(*entries);
  if (const auto entries = number_in(at + "rqsize_default")) read.receive_queue = queue_entries(*entries);
  if (const auto bytes = number_in(at + "inline_default")) read.inline_bytes = inline_limit(*bytes);
  if (const auto entries = number_in(at + "iomap_size")) read.iomap_entries = iomap_limit(*entries);
  if (const auto us = number_in(at + "polling_time")) read.polling_us = std::min(*us, most_polling_us);
  return read;
}

int Options::set(int level, int name, const void* value, socklen_t size, bool connected) {
  switch (level) {
    case SOL_SOCKET:
      return set_socket(*this, name, value, size, connected);
    case IPPROTO_TCP:
      return set_tcp(*this, name, value, size);
    case IPPROTO_IPV6: {
      const auto number = int_of(value, size);
      if (name != IPV6_V6ONLY) return ENOPROTOOPT;
      if (!number) return EINVAL;
      v6_only = *number != 0;
      return 0;
    }
    case SOL_RDMA:
      return set_rdma(*this, name, value, size, connected);
    default:
      return ENOPROTOOPT;
  }
}

int Options::get(int level, int name, void* value, socklen_t* size) const {
  switch (level) {
    case SOL_SOCKET:
      return get_socket(*this, name, value, size);
    case IPPROTO_TCP:
      return get_tcp(*this, name, value, size);
    case IPPROTO_IPV6:
      return name == IPV6_V6ONLY ? give_int(v6_only, value, size) : ENOPROTOOPT;
    case SOL_RDMA:
      return get_rdma(*this, name, value, size);
    default:
      return ENOPROTOOPT;
  }
}

}  // namespace weir::rsocket
