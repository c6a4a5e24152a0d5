#include "tensor/hub/push_rules.hpp"

#include <algorithm>
#include <charconv>

#include "tensor/address.hpp"
#include "tensor/arrays/metadata.hpp"

namespace weir::tensor {
namespace {

// Splits at commas and drops empty parts.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) parts.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

template <class Bytes>
bool same_bits(const Bytes& one, const Bytes& other, unsigned bits) {
  for (std::size_t i = 0; i < one.size() && bits > 0; ++i) {
    const unsigned here = std::min(bits, 8U);
    if (((one[i] ^ other[i]) >> (8U - here)) != 0) return false;
    bits -= here;
  }
  return true;
}

}  // namespace

Result<PushRules> PushRules::make(const PushSettings& settings) {
  PushRules rules;
  for (const std::string_view each : parts_of(settings.names)) {
    const bool prefix = each.ends_with('*');
    const std::string_view text = each.substr(0, each.size() - (prefix ? 1 : 0));
    if (text.find('*') != std::string_view::npos || text.size() > most_name_bytes)
      return fail(Errc::bad_address, "push_names: '" + std::string(each) + "' is neither a name nor NAME*");
    rules.patterns_.push_back({std::string(text), prefix});
  }
  for (const std::string_view each : parts_of(settings.from)) {
    const std::size_t slash = std::min(each.find('/'), each.size());
    std::error_code failed;
    const auto address = unmapped(asio::ip::make_address(std::string(each.substr(0, slash)), failed));
    const unsigned most = address.is_v4() ? 32 : 128;
    unsigned bits = most;
    const std::string_view rest = each.substr(std::min(slash + 1, each.size()));
    const auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), bits);
    const bool whole = slash == each.size() || (wrong == std::errc() && end == rest.data() + rest.size());
    if (failed || !whole || bits > most)
      return fail(Errc::bad_address,
                  "push_from: '" + std::string(each) + "' is neither ADDRESS nor ADDRESS/BITS");
    rules.networks_.push_back({address, bits});
  }
  return rules;
}

bool PushRules::takes(std::string_view name) const {
  return std::ranges::any_of(patterns_, [&](const Pattern& each) {
    return each.prefix ? name.starts_with(each.text) : name == each.text;
  });
}

bool PushRules::admits(const asio::ip::address& peer) const {
  const asio::ip::address from = unmapped(peer);
  return networks_.empty() || std::ranges::any_of(networks_, [&](const Network& each) {
           if (from.is_v4() != each.address.is_v4()) return false;
           return from.is_v4()
                      ? same_bits(from.to_v4().to_bytes(), each.address.to_v4().to_bytes(), each.prefix_bits)
                      : same_bits(from.to_v6().to_bytes(), each.address.to_v6().to_bytes(), each.prefix_bits);
         });
}

}  // namespace weir::tensor
