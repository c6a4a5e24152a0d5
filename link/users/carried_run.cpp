#include "link/users/carried_run.hpp"

#include <cstring>

#include "wire/icrc.hpp"

namespace weir::link {
namespace {

constexpr std::uint32_t greeting_magic = 0x31524557, run_magic = 0x32524557;  // "WER1", "WER2"

struct Greeting8 {
  std::uint32_t magic;
  std::uint16_t slot, zero;
};
static_assert(sizeof(Greeting8) == greeting_bytes);

struct RunHeader {
  std::uint32_t magic;
  std::uint16_t segment;
  std::uint8_t traffic_class, hop_limit;
  std::array<std::uint8_t, 16> source, destination;
};
static_assert(sizeof(RunHeader) == run_header_bytes);

constexpr std::size_t bth_bytes = 12;
constexpr std::size_t shortest_packet = bth_bytes + wire::icrc_bytes;

}  // namespace

std::array<std::byte, greeting_bytes> encode_greeting(Slot slot) {
  const Greeting8 greeting{greeting_magic, slot, 0};
  std::array<std::byte, greeting_bytes> bytes;
  std::memcpy(bytes.data(), &greeting, sizeof greeting);
  return bytes;
}

std::optional<Slot> parse_greeting(std::span<const std::byte> message) {
  Greeting8 greeting;
  if (message.size() != sizeof greeting) return std::nullopt;
  std::memcpy(&greeting, message.data(), sizeof greeting);
  const bool known = greeting.magic == greeting_magic && greeting.zero == 0;
  if (!known || greeting.slot == 0 || greeting.slot >= max_slots) return std::nullopt;
  return greeting.slot;
}

std::array<std::byte, run_header_bytes> encode_run_header(const CarriedRun& run) {
  const RunHeader header{run_magic,     run.segment, run.traffic_class,
                         run.hop_limit, run.source,  run.destination};
  std::array<std::byte, run_header_bytes> bytes;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

std::optional<CarriedRun> parse_run(std::span<const std::byte> message) {
  RunHeader header;
  if (message.size() < sizeof header || message.size() - sizeof header > max_carried_bytes)
    return std::nullopt;
  std::memcpy(&header, message.data(), sizeof header);
  const auto bytes = message.subspan(sizeof header);
  if (header.magic != run_magic || header.segment < shortest_packet || bytes.empty()) return std::nullopt;
  if ((bytes.size() + header.segment - 1) / header.segment > max_carried_packets) return std::nullopt;
  return CarriedRun{bytes,         header.segment,    header.traffic_class, header.hop_limit,
                    header.source, header.destination};
}

}  // namespace weir::link
