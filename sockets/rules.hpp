// Which connections may change to RDMA, chosen by program and port (WEIR_SOCKETS_RULES).
//
// Rules are separated by commas or line ends; a # starts a comment up to the end of the line:
//
//   off port 22, off program pgbench port 5432, on program redis-*, off
//
// The first rule that matches decides; if none matches, the answer is on. `program` takes a shell pattern,
// `port` a number or a range, which either end may match. Pure.
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

  // The error names the word that makes no sense and says why.
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

// Reads the value of WEIR_SOCKETS_RULES: rules, or, if it begins with a slash, the path of a file with rules.
std::expected<Rules, std::string> read_rules(const char* value);

}  // namespace weir::sockets
