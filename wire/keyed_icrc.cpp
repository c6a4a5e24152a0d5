#include "wire/keyed_icrc.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

namespace weir::wire {
namespace {

constexpr std::size_t word_bytes = 8;
// FECN, BECN and the reserved bits beside them: byte 4 of the BTH.
constexpr std::uint64_t changed_by_switches = std::uint64_t{0xff} << 32;

using Halves = std::array<std::uint64_t, 2>;

}  // namespace

KeyedIcrc::KeyedIcrc(const hash::SipKey& key, const Address& source, const Address& destination,
                     std::uint16_t source_port, std::uint16_t destination_port)
    : state_(key) {
  for (const Address* address : {&source, &destination})
    for (const std::uint64_t half : std::bit_cast<Halves>(*address)) state_.add(half);
  state_.add(std::uint64_t{source_port} << 16 | destination_port);
}

std::uint32_t KeyedIcrc::of(std::span<const std::byte> from_bth) const {
  hash::SipMacState state = state_;
  state.add(from_bth.size());
  std::array<std::byte, word_bytes> first{};
  const std::size_t in_first = std::min(from_bth.size(), first.size());
  std::copy_n(from_bth.begin(), in_first, first.begin());
  state.add(std::bit_cast<std::uint64_t>(first) | changed_by_switches);
  const auto rest = from_bth.subspan(in_first);
  return static_cast<std::uint32_t>(
      finish_with(state, {reinterpret_cast<const char*>(rest.data()), rest.size()}));
}

}  // namespace weir::wire
