// The control messages of Valkey over RDMA: 32 bytes, big-endian, sent with SEND.
//
//   opcode  name                body
//   0       GetServerFeature    opcode u16, select u16, 20 reserved, features u64
//   1       SetClientFeature    the same
//   2       Keepalive           opcode u16, 30 reserved
//   3       RegisterXferMemory  opcode u16, 14 reserved, addr u64, length u32, key u32
//
// parse() takes bytes from a peer and yields only messages that are legal by themselves; whether a message
// may come now, from this side, is connection.cpp's business. Reserved bytes are sent as 0 and ignored. Pure
// functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <variant>

#include "rdma/error.hpp"

namespace weir::rdma {

inline constexpr std::size_t control_message_bytes = 32;
using ControlBytes = std::array<std::byte, control_message_bytes>;

struct GetServerFeature {
  std::uint16_t select = 0;  // which set of 64 features; echoed by the answer
  std::uint64_t features = 0;
  friend bool operator==(const GetServerFeature&, const GetServerFeature&) = default;
};

struct SetClientFeature {
  std::uint16_t select = 0;
  std::uint64_t features = 0;
  friend bool operator==(const SetClientFeature&, const SetClientFeature&) = default;
};

struct Keepalive {
  friend bool operator==(const Keepalive&, const Keepalive&) = default;
};

// "You may write here from offset 0": legal if length > 0 and [addr, addr + length) does not wrap.
struct RegisterXferMemory {
  std::uint64_t addr = 0;
  std::uint32_t length_bytes = 0;
  std::uint32_t rkey = 0;
  friend bool operator==(const RegisterXferMemory&, const RegisterXferMemory&) = default;
};

using ControlMessage = std::variant<GetServerFeature, SetClientFeature, Keepalive, RegisterXferMemory>;

// Errc::bad_control_length, Errc::unknown_opcode or Errc::bad_announcement.
std::expected<ControlMessage, Errc> parse(std::span<const std::byte> bytes);
ControlBytes encode(const ControlMessage&);

}  // namespace weir::rdma
