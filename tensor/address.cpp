#include "tensor/address.hpp"

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <charconv>

namespace weir::tensor {
namespace {

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(Errc::bad_address,
              "'" + std::string(text) + "': " + std::string(why) + "; write rdma://HOST:PORT");
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  Address address;
  std::string_view rest = text;
  if (!rest.starts_with("rdma://")) return bad(text, "tensors travel by RDMA only");
  rest.remove_prefix(rest.find("://") + 3);
  if (rest.find('?') != std::string_view::npos) return bad(text, "an address has no settings");
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return bad(text, "no port");
  std::string_view host = rest.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return bad(text, "no host");
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (failed != std::errc() || end != port.data() + port.size()) return bad(text, "no port from 0 to 65535");
  address.host = host;
  return address;
}

Result<rdma::Endpoint> resolve(const Address& address) {
  std::error_code failed;
  if (const auto literal = asio::ip::make_address(address.host, failed); !failed)
    return rdma::Endpoint(literal, address.port);
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port), failed);
  if (failed || found.empty())
    return fail(Errc::unreachable, "the host '" + address.host + "' is not known: " + failed.message());
  return found.begin()->endpoint();
}

}  // namespace weir::tensor
