#include "transport/own_host.hpp"

#include <arpa/inet.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "transport/host_port.hpp"

namespace weir::transport {

namespace {

bool is_address(const std::string& host) {
  in6_addr any;
  const std::string unscoped = host.substr(0, host.find('%'));
  return inet_pton(AF_INET, host.c_str(), &any) == 1 || inet_pton(AF_INET6, unscoped.c_str(), &any) == 1;
}

bool is_own_name(std::string_view host) {
  std::array<char, 256> own{};
  gethostname(own.data(), own.size() - 1);
  const std::string_view name(own.data());
  return !name.empty() && host.size() >= name.size() &&
         strncasecmp(host.data(), name.data(), name.size()) == 0 &&
         (host.size() == name.size() || host[name.size()] == '.');
}

}  // namespace

bool names_this_host(std::string_view host_field) {
  const auto parsed = parse_host_port(host_field);
  std::string host = parsed ? parsed->host : std::string(host_field);
  std::ranges::transform(host, host.begin(), [](unsigned char c) { return std::tolower(c); });
  return host.empty() || is_address(host) || host == "localhost" || host.ends_with(".localhost") ||
         is_own_name(host);
}

}  // namespace weir::transport
