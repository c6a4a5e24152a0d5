#include "rdma/stream/control_message.hpp"

#include <concepts>
#include <limits>

namespace weir::rdma {
namespace {

enum class Opcode : std::uint16_t {
  get_server_feature = 0,
  set_client_feature = 1,
  keepalive = 2,
  register_xfer_memory = 3,
};

namespace offset {
constexpr std::size_t opcode = 0;
constexpr std::size_t select = 2;
constexpr std::size_t features = 24;
constexpr std::size_t addr = 16;
constexpr std::size_t length = 24;
constexpr std::size_t key = 28;
}  // namespace offset

template <std::unsigned_integral T>
T load_be(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>((static_cast<std::uint64_t>(value) << 8) |
                           std::to_integer<std::uint64_t>(bytes[at + i]));
  return value;
}

template <std::unsigned_integral T>
void store_be(ControlBytes& bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes[at + i] = static_cast<std::byte>(value >> (8 * (sizeof(T) - 1 - i)));
}

void store_opcode(ControlBytes& bytes, Opcode opcode) {
  store_be(bytes, offset::opcode, static_cast<std::uint16_t>(opcode));
}

template <class Feature>
void store_feature(ControlBytes& bytes, Opcode opcode, const Feature& message) {
  store_opcode(bytes, opcode);
  store_be(bytes, offset::select, message.select);
  store_be(bytes, offset::features, message.features);
}

struct Encoder {
  ControlBytes& bytes;
  void operator()(const GetServerFeature& m) const { store_feature(bytes, Opcode::get_server_feature, m); }
  void operator()(const SetClientFeature& m) const { store_feature(bytes, Opcode::set_client_feature, m); }
  void operator()(const Keepalive&) const { store_opcode(bytes, Opcode::keepalive); }
  void operator()(const RegisterXferMemory& m) const {
    store_opcode(bytes, Opcode::register_xfer_memory);
    store_be(bytes, offset::addr, m.addr);
    store_be(bytes, offset::length, m.length_bytes);
    store_be(bytes, offset::key, m.rkey);
  }
};

std::expected<ControlMessage, Errc> parse_announcement(std::span<const std::byte> bytes) {
  const RegisterXferMemory message{load_be<std::uint64_t>(bytes, offset::addr),
                                   load_be<std::uint32_t>(bytes, offset::length),
                                   load_be<std::uint32_t>(bytes, offset::key)};
  if (message.length_bytes == 0) return std::unexpected(Errc::bad_announcement);
  if (message.addr > std::numeric_limits<std::uint64_t>::max() - message.length_bytes)
    return std::unexpected(Errc::bad_announcement);
  return message;
}

}  // namespace

std::expected<ControlMessage, Errc> parse(std::span<const std::byte> bytes) {
  if (bytes.size() != control_message_bytes) return std::unexpected(Errc::bad_control_length);
  const auto select = load_be<std::uint16_t>(bytes, offset::select);
  const auto features = load_be<std::uint64_t>(bytes, offset::features);
  switch (static_cast<Opcode>(load_be<std::uint16_t>(bytes, offset::opcode))) {
    case Opcode::get_server_feature:
      return GetServerFeature{select, features};
    case Opcode::set_client_feature:
      return SetClientFeature{select, features};
    case Opcode::keepalive:
      return Keepalive{};
    case Opcode::register_xfer_memory:
      return parse_announcement(bytes);
  }
  return std::unexpected(Errc::unknown_opcode);
}

ControlBytes encode(const ControlMessage& message) {
  ControlBytes bytes{};
  std::visit(Encoder{bytes}, message);
  return bytes;
}

}  // namespace weir::rdma
