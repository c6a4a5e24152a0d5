#include "faults/packet_kinds.hpp"

#include <array>

#include "wire/opcodes.hpp"
#include "wire/roce.hpp"

namespace weir::faults {
namespace {

using wire::Operation;

constexpr std::size_t bth_bytes = 12;

Operation operation_of(const Headers& packet) { return static_cast<Operation>(packet.opcode & 0x1f); }
bool is_notification(const Headers& packet) { return packet.opcode == wire::congestion_notification; }
bool is_between(const Headers& packet, Operation first, Operation last) {
  return !is_notification(packet) && operation_of(packet) >= first && operation_of(packet) <= last;
}
bool is_any_of(const Headers& packet, std::span<const Operation> operations) {
  if (is_notification(packet)) return false;
  for (const Operation operation : operations)
    if (operation_of(packet) == operation) return true;
  return false;
}
// The upper three bits say which (9.7.5.2.1): 000 ACK, 001 RNR NAK, 011 NAK.
bool has_syndrome(const Headers& packet, std::uint8_t syndrome) {
  return is_between(packet, Operation::acknowledge, Operation::acknowledge) &&
         (packet.syndrome & 0x60) == syndrome;
}

constexpr Operation sends[] = {
    Operation::send_first,           Operation::send_middle,         Operation::send_last,
    Operation::send_last_imm,        Operation::send_only,           Operation::send_only_imm,
    Operation::send_last_invalidate, Operation::send_only_invalidate};
constexpr Operation atomics[] = {Operation::compare_swap, Operation::fetch_add, Operation::atomic_write};

bool is_request(const Headers& packet) { return !is_response(packet) && !is_notification(packet); }
bool is_send(const Headers& packet) { return is_any_of(packet, sends); }
bool is_write(const Headers& packet) {
  return is_between(packet, Operation::write_first, Operation::write_only_imm);
}
bool is_read(const Headers& packet) {
  return is_between(packet, Operation::read_request, Operation::read_request);
}
bool is_read_response(const Headers& packet) {
  return is_between(packet, Operation::read_response_first, Operation::read_response_only);
}
bool is_atomic(const Headers& packet) { return is_any_of(packet, atomics); }
bool is_atomic_response(const Headers& packet) {
  return is_between(packet, Operation::atomic_acknowledge, Operation::atomic_acknowledge);
}
bool is_ack(const Headers& packet) { return has_syndrome(packet, 0); }
bool is_nak(const Headers& packet) { return has_syndrome(packet, wire::nak); }
bool is_rnr_nak(const Headers& packet) { return has_syndrome(packet, wire::rnr_nak); }

constexpr PacketKind kinds[] = {
    {"request", "SENDs, WRITEs, READ requests, atomics and datagrams", is_request},
    {"response", "acknowledgements, NAKs and what answers READs and atomics", is_response},
    {"send", "SENDs and datagrams", is_send},
    {"write", "RDMA WRITEs", is_write},
    {"read", "requests for RDMA READs", is_read},
    {"read-response", "the data that a READ asked for", is_read_response},
    {"atomic", "atomics, and ATOMIC WRITE", is_atomic},
    {"atomic-response", "their answers", is_atomic_response},
    {"ack", "acknowledgements", is_ack},
    {"nak", "negative acknowledgements, also of a gap", is_nak},
    {"rnr-nak", "receiver not ready", is_rnr_nak},
    {"cnp", "congestion notifications", is_notification},
};

constexpr std::array<std::string_view, 32> operation_names = {"SEND_FIRST",
                                                              "SEND_MIDDLE",
                                                              "SEND_LAST",
                                                              "SEND_LAST_IMM",
                                                              "SEND_ONLY",
                                                              "SEND_ONLY_IMM",
                                                              "WRITE_FIRST",
                                                              "WRITE_MIDDLE",
                                                              "WRITE_LAST",
                                                              "WRITE_LAST_IMM",
                                                              "WRITE_ONLY",
                                                              "WRITE_ONLY_IMM",
                                                              "READ_REQUEST",
                                                              "READ_FIRST",
                                                              "READ_MIDDLE",
                                                              "READ_LAST",
                                                              "READ_ONLY",
                                                              "ACK",
                                                              "ATOMIC_ACK",
                                                              "CMP_SWAP",
                                                              "FETCH_ADD",
                                                              "",
                                                              "SEND_LAST_INV",
                                                              "SEND_ONLY_INV",
                                                              "",
                                                              "",
                                                              "",
                                                              "",
                                                              "",
                                                              "ATOMIC_WRITE",
                                                              "",
                                                              ""};

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint32_t>(bytes[at]) << 16 |
         std::to_integer<std::uint32_t>(bytes[at + 1]) << 8 | std::to_integer<std::uint32_t>(bytes[at + 2]);
}

}  // namespace

std::optional<Headers> headers_of(std::span<const std::byte> bytes) {
  if (bytes.size() < bth_bytes) return std::nullopt;
  Headers headers{.opcode = std::to_integer<std::uint8_t>(bytes[0]),
                  .destination = number_at(bytes, 5),
                  .psn = number_at(bytes, 9)};
  if (is_between(headers, Operation::acknowledge, Operation::acknowledge) && bytes.size() > bth_bytes)
    headers.syndrome = std::to_integer<std::uint8_t>(bytes[bth_bytes]);
  return headers;
}

std::optional<std::span<const std::byte>> payload_of(std::span<const std::byte> from_bth) {
  if (from_bth.size() < wire::icrc_bytes) return std::nullopt;
  const auto packet = wire::parse_transport(from_bth.first(from_bth.size() - wire::icrc_bytes));
  if (!packet || packet->payload.empty()) return std::nullopt;
  return packet->payload;
}

std::span<const PacketKind> packet_kinds() { return kinds; }

bool is_response(const Headers& packet) {
  return is_between(packet, Operation::read_response_first, Operation::atomic_acknowledge);
}

std::string name_of(const Headers& packet) {
  if (is_notification(packet)) return "CNP";
  if (is_nak(packet)) return "NAK";
  if (is_rnr_nak(packet)) return "RNR_NAK";
  const std::string_view name = operation_names[packet.opcode & 0x1f];
  return name.empty() ? "opcode " + std::to_string(packet.opcode) : std::string(name);
}

}  // namespace weir::faults
