#include "kv/gateway/redirect.hpp"

#include "kv/gateway/key_slot.hpp"

namespace weir::kv::cluster {

std::optional<Redirect> read_redirect(std::string_view reply, std::string_view answered_host) {
  constexpr std::string_view moved = "-MOVED ";
  constexpr std::string_view ask = "-ASK ";
  const bool once = reply.starts_with(ask);
  if (!once && !reply.starts_with(moved)) return std::nullopt;
  reply.remove_prefix(once ? ask.size() : moved.size());
  reply = reply.substr(0, reply.find_first_of("\r\n"));
  const std::size_t blank = reply.find(' ');
  if (blank == reply.npos) return std::nullopt;
  const auto slot = parse_int(reply.substr(0, blank));
  auto address = read_address(reply.substr(blank + 1), answered_host);
  if (!slot || *slot < 0 || *slot >= slot_count || !address) return std::nullopt;
  return Redirect{once, static_cast<std::uint16_t>(*slot), std::move(*address)};
}

}  // namespace weir::kv::cluster
