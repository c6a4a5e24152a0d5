#include "transport/newcomers.hpp"

#include <arpa/inet.h>

#include <array>
#include <cstring>

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

Newcomers::Stay Newcomers::enter(std::string_view address, Leave leave) {
  const std::lock_guard lock(mutex_);
  const auto source = sources_.try_emplace(source_of(address)).first;
  if (!source->second.empty()) ranked_.erase(source);
  const std::uint64_t number = ++entered_;
  source->second.emplace(number, std::move(leave));
  ranked_.insert(source);
  by_number_.emplace(number, source);
  return {shared_from_this(), number};
}

Newcomers::Room Newcomers::make_room(Lack of) {
  Leave leave;
  {
    const std::lock_guard lock(mutex_);
    if (ranked_.empty()) return Room::none;
    const Sources::iterator source = *ranked_.rbegin();
    leave = remove(source, source->second.begin()->first);
  }
  return leave(of);
}

void Newcomers::forget(std::uint64_t number) {
  Leave gone;  // destroyed without the lock: it may own what leaves
  const std::lock_guard lock(mutex_);
  if (const auto found = by_number_.find(number); found != by_number_.end())
    gone = remove(found->second, number);
}

Newcomers::Leave Newcomers::remove(Sources::iterator source, std::uint64_t number) {
  ranked_.erase(source);
  by_number_.erase(number);
  Leave leave = std::move(source->second.extract(number).mapped());
  if (source->second.empty())
    sources_.erase(source);
  else
    ranked_.insert(source);
  return leave;
}

std::size_t Newcomers::size() const {
  const std::lock_guard lock(mutex_);
  return by_number_.size();
}

}  // namespace weir::transport
