// Which connections may change to RDMA, as the user says by program and port (WEIR_SOCKETS_RULES).
//
// Rules are separated by commas or line ends; what follows a # up to the line's end is none of it:
//
//   off port 22, off program pgbench port 5432, on program redis-*, off
//
// The first rule that fits decides; none fits: on. `program` takes a shell pattern, `port` a number or a
// range, of either end. Pure.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace weir::sockets {

class Rules {
 public:
  static constexpr std::size_t most_rules = 256, most_bytes = 1 << 16;

  // Or which word makes no sense, and why.
  static std::expected<Rules, std::string> parse(std::string_view text);
  bool allow(std::string_view program, std::uint32_t own_port, std::uint32_t peers_port) const;
  std::size_t size() const { return rules_.size(); }

 private:
  struct Rule {
    bool on = true;
    std::string program;  // a pattern; empty: any
    std::uint32_t low = 0, high = 65535;
  };
  static std::expected<Rule, std::string> parse_rule(std::string_view text);

  std::vector<Rule> rules_;
};

// What WEIR_SOCKETS_RULES holds: rules, or, where it begins with a slash, the file that has them.
std::expected<Rules, std::string> read_rules(const char* value);

}  // namespace weir::sockets
