#include "verbs/nic/carrier/packet_target.hpp"

#include "rnic/types.hpp"
#include "verbs/nic/management_port.hpp"
#include "wire/byte_order.hpp"

namespace weir::verbs {
namespace {

// IBA 9.2, 9.6.2, 13.4.2, 12.6: a management datagram is behind BTH and DETH, its message behind the header
// of 24 bytes.
constexpr std::size_t destination_at = 5, mad_at = 20, attribute_at = mad_at + 16, local_at = mad_at + 24,
                      remote_at = local_at + 4, service_at = local_at + 12;
constexpr std::size_t class_at = mad_at + 1;
constexpr std::byte vendor_class{0x30};  // 0x30 to 0x4f are vendors' (IBA 16.5)
constexpr std::uint32_t group = 0xffffff;

// 0: the packet ends before.
std::uint32_t number_at(std::span<const std::byte> packet, std::size_t at, std::size_t bytes) {
  if (packet.size() < at + bytes) return 0;
  return static_cast<std::uint32_t>(wire::Reader(packet.subspan(at)).number(bytes));
}

std::optional<link::StreamTarget> process_in(std::uint32_t slot) {
  if (slot == 0 || slot >= link::max_slots) return std::nullopt;
  return link::StreamTarget{.slot = static_cast<link::Slot>(slot)};
}

}  // namespace

std::array<std::byte, wire::mad_bytes> sign_of_life(link::Slot to) {
  std::array<std::byte, wire::mad_bytes> mad{};
  const std::uint32_t answers = std::uint32_t{to} << communication_slot_shift;
  mad[0] = std::byte{1};  // the base version of MADs
  mad[class_at - mad_at] = vendor_class;
  mad[2] = std::byte{1};  // the class's own
  for (std::size_t i = 0; i < 4; ++i)
    mad[remote_at - mad_at + i] = static_cast<std::byte>(answers >> (8 * (3 - i)));
  return mad;
}

bool is_sign_of_life(std::span<const std::byte> packet) {
  return is_management(packet) && packet.size() > class_at && packet[class_at] == vendor_class;
}

bool is_management(std::span<const std::byte> packet) {
  return number_at(packet, destination_at, 3) == wire::cm_qpn;
}

std::optional<link::StreamTarget> target_of(std::span<const std::byte> packet) {
  const std::uint32_t queue_pair = number_at(packet, destination_at, 3);
  if (queue_pair == group) return std::nullopt;
  if (queue_pair != wire::cm_qpn) return process_in(queue_pair >> rnic::qp_index_bits);
  const std::uint32_t attribute = number_at(packet, attribute_at, 2);
  if (attribute == wire::CmReq::attribute || attribute == wire::CmSidrReq::attribute) {
    const std::uint32_t service = number_at(packet, service_at, 4);
    return service != 0 ? std::optional(link::StreamTarget{.service = service}) : std::nullopt;
  }
  const std::size_t answers_at = attribute == wire::CmSidrRep::attribute ? local_at : remote_at;
  return process_in(number_at(packet, answers_at, 4) >> communication_slot_shift);
}

}  // namespace weir::verbs
