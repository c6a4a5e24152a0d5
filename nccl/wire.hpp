// What two plugins exchange: the handle that NCCL carries to the connecting side, the private data of the
// connection request and its answer, and the offers by which a receiver says where data may be written.
//
// Layouts are fixed, little-endian, and versioned by `protocol`; ends with different protocols refuse each
// other. The last 16 bytes of a handle are used only by the connecting side: they name the attempt that the
// next call to connect() continues. Values; no threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nccl/abi_types.hpp"
#include "rdma/verbs/cm.hpp"

namespace weir::nccl {

inline constexpr std::uint16_t protocol = 1;
inline constexpr std::size_t max_group = 8;  // receives that one irecv() may group
inline constexpr std::size_t slots = 64;     // groups that may be under way on one connection

// The 128-byte handle that listen() fills in.
struct Handle {
  static constexpr std::uint64_t expected_magic = 0x4c43434e52494557;  // "WEIRNCCL"
  std::uint64_t magic;
  std::uint16_t protocol;
  std::uint16_t family;  // AF_INET or AF_INET6
  std::uint16_t port;
  std::uint16_t reserved;
  std::array<std::uint8_t, 16> address;  // AF_INET uses the first four
  std::uint32_t scope;
  std::uint32_t reserved2;
  // Known only to those who received the handle; requests without it are rejected.
  std::uint64_t secret;
  std::array<std::uint8_t, 64> unused;
  std::uint64_t attempt;    // local: the attempt to connect; 0: none yet
  std::uint64_t attempter;  // local: the process that made it, since another may have copied the handle
};
static_assert(sizeof(Handle) == handle_bytes);

// Sent with the connection request: where the receiver may write its offers.
struct Hello {
  static constexpr std::uint32_t expected_magic = 0x4e524957;
  std::uint32_t magic;
  std::uint16_t protocol;
  std::uint16_t slots;
  std::uint64_t secret;
  std::uint64_t offers_address;
  std::uint32_t offers_rkey;
  std::uint32_t reserved;
};
static_assert(sizeof(Hello) == 32);

struct Welcome {
  std::uint32_t magic;
  std::uint16_t protocol;
  std::uint16_t reserved;
};
static_assert(sizeof(Welcome) == 8);

// One receive of a group. It is 32 bytes and aligned to them, so that no device splits it, however it orders
// its writes; writing `sequence` makes it valid.
struct alignas(32) Offer {
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t rkey;
  std::int32_t tag;
  std::uint16_t count;     // receives in the group
  std::uint16_t posted;    // 1: a receive of this buffer is posted, so a SEND finds it
  std::uint64_t sequence;  // the group's number, from 1
};
static_assert(sizeof(Offer) == 32);
using OfferRow = std::array<Offer, max_group>;

// A message's immediate: the group's slot, and the receive within the group.
struct Arrival {
  std::uint8_t slot;
  std::uint8_t member;
};
constexpr std::uint32_t immediate(Arrival arrival) {
  return std::uint32_t{arrival.slot} << 8 | arrival.member;
}
constexpr std::optional<Arrival> arrival(std::uint32_t immediate) {
  if (immediate >= slots << 8 || (immediate & 0xff) >= max_group) return std::nullopt;
  return Arrival{static_cast<std::uint8_t>(immediate >> 8), static_cast<std::uint8_t>(immediate & 0xff)};
}

Handle make_handle(const rdma::Endpoint& address, std::uint64_t secret);
// Nothing if it is not a handle of ours, or has another protocol.
std::optional<rdma::Endpoint> address_of(const Handle& handle);
// Nothing if it is too short, or not from a plugin with this protocol.
std::optional<Hello> parse_hello(std::span<const std::byte> private_data);
bool is_welcome(std::span<const std::byte> private_data);

}  // namespace weir::nccl
