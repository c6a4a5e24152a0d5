#include "tensor/link/admission.hpp"

#include <ifaddrs.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/ip/tcp.hpp>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "tensor/address.hpp"
#include "tensor/arrays/little_endian.hpp"

namespace weir::tensor {
namespace {

using Step = wire::Auth::Step;

Nonce mac_of(std::string_view token, std::string_view role, std::uint64_t generation, const Nonce& peers,
             const Nonce& hubs) {
  Writer text;
  text.text(role).number(generation).append(peers).append(hubs);
  const std::vector<std::byte> bytes = text.take();
  Nonce mac{};
  unsigned size = static_cast<unsigned>(mac.size());
  HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
       reinterpret_cast<unsigned char*>(mac.data()), &size);
  return mac;
}

bool equal(const Nonce& one, const Nonce& other) {
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace

Nonce fresh_nonce() {
  Nonce nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return nonce;
}

bool is_of_this_host(const asio::ip::address& address) {
  const asio::ip::address sought = unmapped(address);
  if (sought.is_loopback()) return true;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    asio::ip::tcp::endpoint own;
    std::memcpy(own.data(), each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (family == AF_INET ? own.address() == sought
                          : sought.is_v6() && own.address().to_v6().to_bytes() == sought.to_v6().to_bytes())
      return true;
  }
  return false;
}

Error HubAdmission::refusal() const {
  if (!token_.empty()) return {Errc::refused, "the hub serves only peers that show its token (token)", 0};
  return {
      Errc::refused,
      "the hub has no token, so it serves its own host only (at the hub: token, tls.authority with tls://, "
      "or open)",
      0};
}

Result<wire::Auth> HubAdmission::on(const wire::Auth& message, const std::function<Nonce()>& nonce) {
  if (token_.empty()) return fail(Errc::refused, "the peer has a token, and the hub has none (token)");
  if (message.step == Step::hello && state_ == State::fresh) {
    state_ = State::challenged;
    theirs_ = message.bytes;
    ours_ = nonce();
    return wire::Auth{.step = Step::challenge, .bytes = ours_};
  }
  if (message.step != Step::proof || std::exchange(state_, State::over) != State::challenged)
    return fail(Errc::protocol, "an AUTH out of turn");
  admitted_ = equal(message.bytes, mac_of(token_, "peer", generation_, theirs_, ours_));
  if (!admitted_) return fail(Errc::refused, "the token is wrong (token)");
  return wire::Auth{.step = Step::welcome, .bytes = mac_of(token_, "hub", generation_, theirs_, ours_)};
}

wire::Auth PeerAdmission::hello(const Nonce& nonce) {
  awaited_ = Step::challenge;
  ours_ = nonce;
  return {.step = Step::hello, .bytes = nonce};
}

Result<std::optional<wire::Auth>> PeerAdmission::on(const wire::Auth& message, std::uint64_t generation) {
  if (token_.empty() || message.step != awaited_) return fail(Errc::protocol, "an AUTH out of turn");
  if (awaited_ == Step::challenge) {
    awaited_ = Step::welcome;
    theirs_ = message.bytes;
    return wire::Auth{.step = Step::proof, .bytes = mac_of(token_, "peer", generation, ours_, theirs_)};
  }
  awaited_ = Step::hello;  // which no hub sends
  if (!equal(message.bytes, mac_of(token_, "hub", generation, ours_, theirs_)))
    return fail(Errc::refused, "the hub does not know the token (token)");
  return std::nullopt;
}

}  // namespace weir::tensor
