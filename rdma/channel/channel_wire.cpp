#include "rdma/channel/channel_wire.hpp"

#include <bit>
#include <cstring>

namespace weir::rdma::channel_wire {
namespace {

enum class Type : std::uint8_t { message = 1, first = 2, more = 3, offer = 4, part = 5 };
constexpr std::uint32_t magic = 0x5743484e;  // "WCHN"

template <class Integer>
void put(std::byte* at, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    at[i] = static_cast<std::byte>(value >> (8 * (sizeof value - 1 - i)) & 0xff);
}

template <class Integer>
Integer get(const std::byte* at) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value = static_cast<Integer>(value << 8 | std::to_integer<Integer>(at[i]));
  return value;
}
// C++ does not define a shift by the type's own width.
template <>
std::uint8_t get<std::uint8_t>(const std::byte* at) {
  return std::to_integer<std::uint8_t>(*at);
}

void put_header(std::byte* at, Type type, std::uint32_t length) {
  put(at, static_cast<std::uint32_t>(type) << 24);
  put(at + 4, length);
}

}  // namespace

std::array<std::byte, greeting_bytes> encode(const Greeting& greeting) {
  std::array<std::byte, greeting_bytes> bytes{};
  put(bytes.data(), magic);
  bytes[4] = std::byte{version};
  bytes[5] = std::byte{greeting.rendezvous_depth};
  put(bytes.data() + 6, greeting.window);
  put(bytes.data() + 8, greeting.block_bytes);
  put(bytes.data() + 12, greeting.max_message);
  return bytes;
}

std::expected<Greeting, Errc> parse_greeting(std::span<const std::byte> bytes) {
  if (bytes.size() < greeting_bytes || get<std::uint32_t>(bytes.data()) != magic ||
      get<std::uint8_t>(bytes.data() + 4) != version)
    return std::unexpected(Errc::not_a_channel);
  const Greeting greeting{.rendezvous_depth = get<std::uint8_t>(bytes.data() + 5),
                          .window = get<std::uint16_t>(bytes.data() + 6),
                          .block_bytes = get<std::uint32_t>(bytes.data() + 8),
                          .max_message = get<std::uint32_t>(bytes.data() + 12)};
  const bool good = greeting.rendezvous_depth <= max_rendezvous_depth && greeting.window > 0 &&
                    greeting.block_bytes >= min_block_bytes && greeting.block_bytes <= max_block_bytes &&
                    std::has_single_bit(greeting.block_bytes) && greeting.max_message > 0 &&
                    greeting.max_message <= max_message_bytes;
  if (!good) return std::unexpected(Errc::not_a_channel);
  return greeting;
}

std::uint32_t encode(const Immediate& immediate) {
  return static_cast<std::uint32_t>(immediate.kind) << 28 | std::uint32_t{immediate.fetched} << 16 |
         immediate.credits;
}

std::expected<Immediate, Errc> parse_immediate(std::uint32_t raw) {
  const std::uint32_t kind = raw >> 28;
  if (kind != static_cast<std::uint32_t>(Immediate::Kind::data) &&
      kind != static_cast<std::uint32_t>(Immediate::Kind::ack))
    return std::unexpected(Errc::bad_immediate);
  return Immediate{.kind = static_cast<Immediate::Kind>(kind),
                   .fetched = static_cast<std::uint16_t>(raw >> 16 & Immediate::max_fetched),
                   .credits = static_cast<std::uint16_t>(raw)};
}

namespace {

std::expected<Record, Errc> get_offer(std::span<const std::byte> body) {
  Offer offer{.address = get<std::uint64_t>(body.data()),
              .length = get<std::uint32_t>(body.data() + 8),
              .rkey = get<std::uint32_t>(body.data() + 12)};
  offer.total = body.size() < part_bytes ? offer.length : get<std::uint32_t>(body.data() + 16);
  offer.offset = body.size() < part_bytes ? 0 : get<std::uint32_t>(body.data() + 20);
  if (offer.length == 0 || offer.address + offer.length < offer.address || offer.length > offer.total ||
      offer.offset > offer.total - offer.length)
    return std::unexpected(Errc::bad_frame);
  return offer;
}

}  // namespace

std::expected<Record, Errc> FrameReader::next() {
  const auto bad = std::unexpected(Errc::bad_frame);
  if (left_.size() < record_header_bytes) return bad;
  const auto type = get<std::uint32_t>(left_.data());
  const auto length = get<std::uint32_t>(left_.data() + 4);
  if (length > left_.size() - record_header_bytes) return bad;
  const std::span<const std::byte> body = left_.subspan(record_header_bytes, length);
  // The padding of the last record is optional.
  const std::size_t taken = std::min(padded(record_header_bytes + length), left_.size());
  const bool alone = !begun_ && taken == left_.size();
  begun_ = true;
  left_ = left_.subspan(taken);

  switch (type >> 24) {
    case static_cast<std::uint32_t>(Type::message):
      if (type << 8 != 0) return bad;
      return WholeMessage{body};
    case static_cast<std::uint32_t>(Type::first): {
      constexpr std::size_t extra = first_header_bytes - record_header_bytes;
      if (type << 8 != 0 || !alone || length <= extra || get<std::uint32_t>(body.data() + 4) != 0) return bad;
      const FirstPart part{get<std::uint32_t>(body.data()), body.subspan(extra)};
      if (part.total <= part.body.size()) return bad;
      return part;
    }
    case static_cast<std::uint32_t>(Type::more):
      if (type << 8 != 0 || !alone || length == 0) return bad;
      return NextPart{body};
    case static_cast<std::uint32_t>(Type::offer): {
      if (type << 8 != 0 || length != offer_bytes) return bad;
      return get_offer(body);
    }
    case static_cast<std::uint32_t>(Type::part): {
      if (type << 8 != 0 || length != part_bytes) return bad;
      return get_offer(body);
    }
    default:
      return bad;
  }
}

void put_message_header(std::byte* at, std::uint32_t length) { put_header(at, Type::message, length); }

void put_first_header(std::byte* at, std::uint32_t total, std::uint32_t length) {
  put_header(at, Type::first, length + (first_header_bytes - record_header_bytes));
  put(at + 8, total);
  put(at + 12, std::uint32_t{0});
}

void put_more_header(std::byte* at, std::uint32_t length) { put_header(at, Type::more, length); }

std::size_t offer_record_bytes(const Offer& offer) {
  return record_header_bytes + (offer.whole() ? offer_bytes : part_bytes);
}

void put_offer(std::byte* at, const Offer& offer) {
  if (offer.whole())
    put_header(at, Type::offer, offer_bytes);
  else
    put_header(at, Type::part, part_bytes);
  put(at + 8, offer.address);
  put(at + 16, offer.length);
  put(at + 20, offer.rkey);
  if (offer.whole()) return;
  put(at + 24, offer.total);
  put(at + 28, offer.offset);
}

}  // namespace weir::rdma::channel_wire
