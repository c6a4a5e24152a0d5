#include "transport/newcomers.hpp"

#include <arpa/inet.h>

#include <array>
#include <cstring>

#include "transport/host_port.hpp"

namespace weir::transport {

std::string source_of(std::string_view address) {
  std::string text(address);
  in6_addr six{};
  if (inet_pton(AF_INET6, text.c_str(), &six) != 1) return text;
  std::array<char, INET6_ADDRSTRLEN> plain{};
  if (IN6_IS_ADDR_V4MAPPED(&six))
    return inet_ntop(AF_INET, six.s6_addr + 12, plain.data(), static_cast<socklen_t>(plain.size()));
  std::memset(six.s6_addr + 8, 0, 8);
  return inet_ntop(AF_INET6, &six, plain.data(), static_cast<socklen_t>(plain.size()));
}

std::string source_of_peer(std::string_view peer) {
  const auto parsed = parse_host_port(peer);
  return source_of(parsed ? parsed->host : peer);
}

Newcomers::Stay Newcomers::enter(std::string_view address, Leave leave) {
  const std::lock_guard lock(mutex_);
  return {shared_from_this(), here_.enter(source_of(address), std::move(leave))};
}

Newcomers::Room Newcomers::make_room(Lack of) {
  std::optional<Leave> leave;
  {
    const std::lock_guard lock(mutex_);
    const auto* const place = here_.first_to_leave();
    if (place == nullptr) return Room::none;
    leave = here_.leave(place->first);
  }
  return (*leave)(of);
}

void Newcomers::move_on(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  here_.move_on(number);
}

void Newcomers::forget(std::uint64_t number) {
  std::optional<Leave> gone;  // destroyed without the lock: it may own what leaves
  const std::lock_guard lock(mutex_);
  gone = here_.leave(number);
}

std::size_t Newcomers::size() const {
  const std::lock_guard lock(mutex_);
  return here_.size();
}

}  // namespace weir::transport
