#include "cluster/redirect.hpp"

#include <utility>

#include "cluster/key_slot.hpp"

namespace weir::cluster {

std::optional<Redirect> read_redirect(std::string_view reply, std::string_view answered_host) {
  constexpr std::string_view moved = "MOVED ";
  constexpr std::string_view ask = "ASK ";
  if (reply.starts_with('-')) reply.remove_prefix(1);
  const bool once = reply.starts_with(ask);
  if (!once && !reply.starts_with(moved)) return std::nullopt;
  reply.remove_prefix(once ? ask.size() : moved.size());
  reply = reply.substr(0, reply.find_first_of("\r\n"));
  const std::size_t blank = reply.find(' ');
  if (blank == reply.npos) return std::nullopt;
  const auto slot = read_number(reply.substr(0, blank), slot_count - 1);
  auto address = read_address(reply.substr(blank + 1), answered_host);
  if (!slot || !address) return std::nullopt;
  return Redirect{once, *slot, std::move(*address)};
}

}  // namespace weir::cluster
