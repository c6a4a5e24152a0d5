// The networks whose hosts we ask for RDMA: `--sockets-peers 10.0.0.0/8,fd00::/8`. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace weir::sockets {

class Networks {
 public:
  static constexpr std::size_t most = 64;

  // A bare address is a network of one host. The error names the word that makes no sense and says why.
  static std::expected<Networks, std::string> parse(std::string_view text);
  // IPv4 as ::ffff:a.b.c.d.
  bool have(const std::array<std::uint8_t, 16>& address) const;
  bool empty() const { return networks_.empty(); }

 private:
  struct Network {
    std::array<std::uint8_t, 16> address{};
    unsigned bits = 0;
  };
  static std::expected<Network, std::string> parse_one(std::string_view word);

  std::vector<Network> networks_;
};

}  // namespace weir::sockets
