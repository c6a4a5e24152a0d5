// The tree that a TOML text is parsed into: that of toml++, without toml++, which is slow to compile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fabric/topology/complaint.hpp"

namespace weir::fabric {

struct TomlMember;
struct TomlDate {};  // dates mean nothing in our files; kept so that they can be rejected

struct TomlValue {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::variant<TomlDate, bool, std::int64_t, double, std::string, std::vector<TomlValue>,
               std::vector<TomlMember>>
      value;
};

struct TomlMember {
  std::string key;
  std::uint32_t line = 0;  // of the key
  std::uint32_t column = 0;
  TomlValue value;
};

// False, with a complaint: the text is not TOML.
bool parse_toml(std::string_view text, const Place& file, TomlValue& tree, Complaints& complaints);

}  // namespace weir::fabric
