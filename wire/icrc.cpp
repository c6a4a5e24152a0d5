#include "wire/icrc.hpp"

#include <algorithm>

#include "wire/crc32.hpp"

namespace weir::wire {
namespace {

constexpr std::byte ones{0xff};
constexpr std::size_t lrh_bytes = 8, ipv4_bytes = 20, ipv6_bytes = 40, udp_bytes = 8, udp_checksum = 6,
                      bth_reserved = 4, longest_masked = ipv6_bytes + udp_bytes + 12;
constexpr std::uint32_t start_of_crc = 0xffffffff;
// Eight bytes of ones replace the LRH, which Ethernet does not have.
constexpr std::array<std::byte, lrh_bytes> lrh = {ones, ones, ones, ones, ones, ones, ones, ones};

void put_16(std::byte* at, std::size_t value) {
  at[0] = static_cast<std::byte>(value >> 8);
  at[1] = static_cast<std::byte>(value);
}

// ---- backwards: the CRC is linear, and a step by one zero bit can be inverted

using Matrix = std::array<std::uint32_t, 32>;  // over two elements; one column for each bit of the CRC

constexpr std::uint32_t times(const Matrix& m, std::uint32_t vector) {
  std::uint32_t sum = 0;
  for (unsigned bit = 0; vector != 0; ++bit, vector >>= 1)
    if (vector & 1) sum ^= m[bit];
  return sum;
}

constexpr unsigned most_steps = 16;  // back over 2^16 bytes at most

// Steps backwards by 2^i zero bytes.
constexpr std::array<Matrix, most_steps> back_by = [] {
  std::array<Matrix, most_steps> powers{};
  const auto back_one_byte = [](std::uint32_t crc) {
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 31 != 0 ? (crc ^ 0xedb88320u) << 1 | 1 : crc << 1;
    return crc;
  };
  for (unsigned bit = 0; bit < 32; ++bit) powers[0][bit] = back_one_byte(1u << bit);
  for (unsigned i = 1; i < most_steps; ++i)
    for (unsigned bit = 0; bit < 32; ++bit) powers[i][bit] = times(powers[i - 1], powers[i - 1][bit]);
  return powers;
}();

// The two bytes that change a message's CRC by `difference` if they are added (xor)
// `behind` bytes before its end.
std::optional<std::uint16_t> two_bytes(std::uint32_t difference, std::size_t behind) {
  if (behind >> most_steps != 0) return std::nullopt;
  // Go back to where the bytes came in. Only the lower 16 bits may differ: the first byte is the lowest.
  std::size_t zero_bytes = behind + 2;
  for (unsigned i = 0; zero_bytes != 0; ++i, zero_bytes >>= 1)
    if (zero_bytes & 1) difference = times(back_by[i], difference);
  if (difference >> 16 != 0) return std::nullopt;
  return static_cast<std::uint16_t>((difference & 0xff) << 8 | difference >> 8);
}

}  // namespace

std::uint32_t icrc(std::span<const std::byte> packet) {
  std::array<std::byte, longest_masked> masked{};
  const std::size_t head = std::min(packet.size(), masked.size());
  std::copy_n(packet.begin(), head, masked.begin());
  const bool v6 = head != 0 && std::to_integer<unsigned>(masked[0]) >> 4 == 6;
  const std::size_t ip_bytes = v6 ? ipv6_bytes : (std::to_integer<std::size_t>(masked[0]) & 15) * 4;
  if (v6) {  // traffic class, flow label, hop limit
    masked[0] |= std::byte{0x0f};
    for (const std::size_t at : {1, 2, 3, 7}) masked[at] = ones;
  } else {  // TOS, TTL, checksum
    for (const std::size_t at : {1, 8, 10, 11}) masked[at] = ones;
  }
  if (ip_bytes + udp_bytes + bth_reserved < masked.size()) {
    masked[ip_bytes + udp_checksum] = masked[ip_bytes + udp_checksum + 1] = ones;
    masked[ip_bytes + udp_bytes + bth_reserved] = ones;
  }
  std::uint32_t crc = crc32(start_of_crc, lrh);
  crc = crc32(crc, std::span(masked).first(head));
  return ~crc32(crc, packet.subspan(head));
}

IcrcRoute::IcrcRoute(const Ends& ends, const hash::SipKey* key) {
  if (key != nullptr)
    keyed_.emplace(*key, ends.source, ends.destination, ends.source_port, ends.destination_port);
  constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  ipv4_ = std::equal(mapped.begin(), mapped.end(), ends.source.begin()) &&
          std::equal(mapped.begin(), mapped.end(), ends.destination.begin());
  std::byte* ip = std::copy(lrh.begin(), lrh.end(), head_.data());
  const auto put_addresses = [&](std::byte* at, std::size_t skipped) {
    at = std::ranges::copy(std::as_bytes(std::span(ends.source)).subspan(skipped), at).out;
    return std::ranges::copy(std::as_bytes(std::span(ends.destination)).subspan(skipped), at).out;
  };
  std::byte* udp = nullptr;
  if (ipv4_) {
    ip[0] = std::byte{0x45};
    ip[1] = ip[8] = ip[10] = ip[11] = ones;  // TOS, TTL, checksum
    ip[6] = std::byte{0x40};                 // DF
    ip[9] = std::byte{17};
    udp = put_addresses(ip + 12, mapped.size());
  } else {
    ip[0] = std::byte{0x6f};
    ip[1] = ip[2] = ip[3] = ip[7] = ones;  // traffic class, flow label, hop limit
    ip[6] = std::byte{17};
    udp = put_addresses(ip + 8, 0);
  }
  put_16(udp, ends.source_port);
  put_16(udp + 2, ends.destination_port);
  udp[udp_checksum] = udp[udp_checksum + 1] = ones;
  bytes_ = static_cast<std::uint8_t>(udp + udp_bytes - head_.data());
}

std::uint32_t IcrcRoute::crc(std::span<const std::byte> from_bth, std::uint16_t ipv4_id) const {
  auto head = head_;
  std::byte* const ip = head.data() + lrh_bytes;
  const std::size_t udp_length = udp_bytes + from_bth.size() + icrc_bytes;
  if (ipv4_) {
    put_16(ip + 2, ipv4_bytes + udp_length);
    put_16(ip + 4, ipv4_id);
    put_16(ip + ipv4_bytes + 4, udp_length);
  } else {
    put_16(ip + 4, udp_length);
    put_16(ip + ipv6_bytes + 4, udp_length);
  }
  std::array<std::byte, 64> masked;
  const std::size_t first = std::min(from_bth.size(), masked.size());
  std::copy_n(from_bth.begin(), first, masked.begin());
  if (first > bth_reserved) masked[bth_reserved] = ones;
  std::uint32_t sum = crc32(start_of_crc, std::span(head).first(bytes_));
  sum = crc32(sum, std::span(masked).first(first));
  return ~crc32(sum, from_bth.subspan(first));
}

std::array<std::byte, icrc_bytes> IcrcRoute::of(std::span<const std::byte> from_bth,
                                                std::uint16_t ipv4_id) const {
  const std::uint32_t sum = keyed_ ? keyed_->of(from_bth) : crc(from_bth, ipv4_id);
  std::array<std::byte, icrc_bytes> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(sum >> (8 * i));
  return bytes;
}

std::optional<std::uint16_t> IcrcRoute::check(std::span<const std::byte> udp_payload,
                                              std::uint16_t likely_id) const {
  if (udp_payload.size() < icrc_bytes || udp_payload.size() > 0xffff - ipv4_bytes - udp_bytes)
    return std::nullopt;
  const std::uint16_t id = ipv4_ ? likely_id : 0;
  const auto covered = udp_payload.first(udp_payload.size() - icrc_bytes);
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < icrc_bytes; ++i)
    stored |= std::to_integer<std::uint32_t>(udp_payload[covered.size() + i]) << (8 * i);
  const std::uint32_t right = keyed_ ? keyed_->of(covered) : crc(covered, id);
  if (stored == right) return id;
  if (!ipv4_ || keyed_) return std::nullopt;
  // After the ID: flags, TTL, protocol, checksum, addresses, the UDP header and what follows it.
  constexpr std::size_t behind_id = ipv4_bytes - 6 + udp_bytes;
  const auto changed = two_bytes(stored ^ right, behind_id + covered.size());
  if (!changed) return std::nullopt;
  return static_cast<std::uint16_t>(id ^ *changed);
}

// A corrupted packet yields every ID with equal probability. "Near" means shortly after the last ID, or
// small, because GSO numbers the packets of a batch from 0.
bool SenderIds::believes(std::uint16_t id) {
  constexpr std::uint16_t ahead = 256, behind = 64, of_a_batch = 128;
  constexpr std::uint8_t enough = 16;
  const auto is_near = [&](std::uint16_t to) {
    return id < of_a_batch || static_cast<std::uint16_t>(id - to + behind) < ahead + behind;
  };
  const bool close = is_near(last_), behind_candidate = has_candidate_ && is_near(candidate_);
  if (close || behind_candidate) {
    if (near_ < enough) ++near_;
    step_ = static_cast<std::uint16_t>(id - last_);
    last_ = id;
    has_candidate_ = false;
    return true;
  }
  const bool strict = near_ == enough && !has_candidate_;
  candidate_ = id;
  if (strict) {  // maybe a jump: the next packet will tell
    has_candidate_ = true;
    return false;
  }
  near_ = 0;
  has_candidate_ = false;
  step_ = static_cast<std::uint16_t>(id - last_);
  last_ = id;
  return true;
}

}  // namespace weir::wire
