#include "rdma/engine/trespass.hpp"

#include <algorithm>

namespace weir::rdma {
namespace {

asio::ip::address plain(asio::ip::address address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return address;
}

}  // namespace

// A host of IPv6 has a /64 network of addresses to itself.
Trespasses::Source Trespasses::source_of(const Endpoint& remote) {
  const asio::ip::address address = plain(remote.address());
  Source source{};
  if (address.is_v4()) {
    source = asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
  } else {
    const auto bytes = address.to_v6().to_bytes();
    std::copy_n(bytes.begin(), 8, source.begin());
  }
  return source;
}

Trespasses::Tries& Trespasses::tries_of(const Source& source, Time now) {
  if (const auto known = sources_.find(source); known != sources_.end()) {
    if (now - known->second.last > remembered) known->second = {};
    return known->second;
  }
  if (sources_.size() == max_sources)
    sources_.erase(std::ranges::min_element(sources_, {}, [](const auto& each) { return each.second.last; }));
  return sources_[source];
}

Trespasses::Counted Trespasses::count(const Endpoint& local, const Endpoint& remote, Time now) {
  const asio::ip::address from = plain(remote.address());
  const bool this_host = from.is_loopback() || from == plain(local.address());
  const std::lock_guard lock(mutex_);
  ++total_;
  Tries& tries = tries_of(source_of(remote), now);
  Counted counted;
  counted.tries = ++tries.count;
  counted.shuts = !this_host && tries.count >= tries_that_shut;
  if (counted.shuts) {
    tries.shut_until = now + shut_for;
    tries.count = 0;
  }
  counted.news = counted.shuts || tries.told == Time() || now - tries.told >= std::chrono::minutes(1);
  tries.last = now;
  if (counted.news) tries.told = now;
  return counted;
}

bool Trespasses::is_shut(const Endpoint& remote, Time now) {
  const std::lock_guard lock(mutex_);
  const auto known = sources_.find(source_of(remote));
  return known != sources_.end() && now < known->second.shut_until;
}

std::uint64_t Trespasses::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

}  // namespace weir::rdma
