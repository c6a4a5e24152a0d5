#include "wire/opcodes.hpp"

#include <array>

namespace weir::wire {
namespace {

using namespace extension;

constexpr unsigned rc = 1, uc = 2, ud = 4, xrc = 8, reliable = rc | xrc, connected = reliable | uc;

struct Row {
  Operation operation;
  unsigned services;
  unsigned extensions;
};
constexpr Row rows[] = {
    {Operation::send_first, connected, payload},
    {Operation::send_middle, connected, payload},
    {Operation::send_last, connected, payload},
    {Operation::send_last_imm, connected, imm | payload},
    {Operation::send_only, connected | ud, payload},
    {Operation::send_only_imm, connected | ud, imm | payload},
    {Operation::write_first, connected, reth | payload},
    {Operation::write_middle, connected, payload},
    {Operation::write_last, connected, payload},
    {Operation::write_last_imm, connected, imm | payload},
    {Operation::write_only, connected, reth | payload},
    {Operation::write_only_imm, connected, reth | imm | payload},
    {Operation::read_request, reliable, reth},
    {Operation::read_response_first, reliable, aeth | payload},
    {Operation::read_response_middle, reliable, payload},
    {Operation::read_response_last, reliable, aeth | payload},
    {Operation::read_response_only, reliable, aeth | payload},
    {Operation::acknowledge, reliable, aeth},
    {Operation::atomic_acknowledge, reliable, aeth | atomic_ack_eth},
    {Operation::compare_swap, reliable, atomic_eth},
    {Operation::fetch_add, reliable, atomic_eth},
    {Operation::send_last_invalidate, reliable, ieth | payload},
    {Operation::send_only_invalidate, reliable, ieth | payload},
    {Operation::atomic_write, reliable, reth | payload},
};

constexpr bool answers(Operation operation) {
  return operation >= Operation::read_response_first && operation <= Operation::atomic_acknowledge;
}

constexpr unsigned service_bit(std::uint8_t opcode) {
  switch (static_cast<Service>(opcode >> 5)) {
    case Service::rc:
      return rc;
    case Service::uc:
      return uc;
    case Service::ud:
      return ud;
    case Service::xrc:
      return xrc;
  }
  return 0;
}

constexpr unsigned no_such_opcode = ~0u;

// A table, because every packet needs a look-up.
constexpr std::array<unsigned, 256> table = [] {
  std::array<unsigned, 256> all{};
  all.fill(no_such_opcode);
  for (unsigned code = 0; code < all.size(); ++code) {
    const unsigned service = service_bit(static_cast<std::uint8_t>(code));
    const auto operation = static_cast<Operation>(code & 31);
    for (const Row& row : rows) {
      if (row.operation != operation || (row.services & service) == 0) continue;
      // A datagram names its sender. An XRC request names its SRQ; its response does not.
      const unsigned more = service == ud ? deth : service == xrc && !answers(operation) ? xrceth : 0;
      all[code] = row.extensions | more;
    }
  }
  all[congestion_notification] = reserved;
  return all;
}();

}  // namespace

std::optional<unsigned> extensions_of(std::uint8_t opcode) {
  const unsigned has = table[opcode];
  return has == no_such_opcode ? std::nullopt : std::optional(has);
}

}  // namespace weir::wire
