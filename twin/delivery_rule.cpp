#include "twin/delivery_rule.hpp"

#include <algorithm>

#include "wire/opcodes.hpp"

namespace weir::twin {
namespace {

using wire::Operation;
using wire::Service;

constexpr std::uint32_t psn_mask = 0xffffff, half_of_psns = 1u << 23;
constexpr std::size_t bth_bytes = 12, xrceth_bytes = 4, reth_bytes = 16;
constexpr std::uint32_t ask_bit = 1u << 31;  // of the BTH's last word

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at]) << 24 | static_cast<std::uint32_t>(bytes[at + 1]) << 16 |
         static_cast<std::uint32_t>(bytes[at + 2]) << 8 | static_cast<std::uint32_t>(bytes[at + 3]);
}

bool is_ahead(std::uint32_t psn, std::uint32_t of) { return ((psn - of) & psn_mask) < half_of_psns; }

}  // namespace

bool DeliveryRule::may_wait(std::uint32_t process, std::span<const std::byte> bytes, bool marked) {
  if (bytes.size() < bth_bytes) return false;
  const auto opcode = static_cast<std::uint8_t>(bytes[0]);
  const auto service = static_cast<Service>(opcode >> 5);
  const auto operation = static_cast<Operation>(opcode & 31);
  if (service != Service::rc && service != Service::xrc) return false;
  // READs take as many numbers as their response has packets, and are answered. So are atomics.
  const bool answer =
      operation >= Operation::read_response_first && operation <= Operation::atomic_acknowledge;
  if (answer) return false;
  const std::uint32_t last = word_at(bytes, 8), psn = last & psn_mask;
  const std::uint64_t key = std::uint64_t{process} << 24 | (word_at(bytes, 4) & psn_mask);
  Connection& connection = connections_[key];
  const bool is_next = connection.known && connection.next == psn;
  if (!connection.known || is_ahead(psn, connection.next)) connection.next = (psn + 1) & psn_mask;
  connection.known = true;
  const std::size_t behind = bth_bytes + (service == Service::xrc ? xrceth_bytes : 0);
  bool silent = false;
  switch (operation) {
    case Operation::send_middle:
    case Operation::write_middle:
    case Operation::write_last:
      silent = true;
      break;
    case Operation::write_first:
    case Operation::write_only:
      if (bytes.size() < behind + reth_bytes) return false;
      silent = lets_into(connection, bytes.subspan(behind, reth_bytes));
      break;
    default:
      break;
  }
  return silent && is_next && !marked && (last & ask_bit) == 0;
}

bool DeliveryRule::lets_into(Connection& connection, std::span<const std::byte> reth) {
  const std::uint64_t from = std::uint64_t{word_at(reth, 0)} << 32 | word_at(reth, 4);
  const std::uint64_t to = from + word_at(reth, 12);
  const std::uint32_t rkey = word_at(reth, 8);
  if (to >= from && connection.rkey == rkey && connection.from <= from && to <= connection.to) return true;
  // A key is of one piece of memory: what lies between two parts of it is in it, too.
  const bool more = connection.rkey == rkey && connection.to != 0;
  connection.from = more ? std::min(connection.from, from) : from;
  connection.to = more ? std::max(connection.to, to) : to;
  connection.rkey = rkey;
  return false;
}

void DeliveryRule::forget(std::uint32_t process) {
  std::erase_if(connections_, [&](const auto& each) { return each.first >> 24 == process; });
}

}  // namespace weir::twin
