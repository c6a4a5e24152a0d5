// Parses what a channel's peer may send; the first byte chooses the kind. A parsed message stays within the
// input, keeps the promises of its type, and survives being encoded and parsed again.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <variant>

#include "rdma/channel/channel_wire.hpp"

namespace wire = weir::rdma::channel_wire;

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

void greeting(std::span<const std::byte> bytes) {
  const auto parsed = wire::parse_greeting(bytes);
  if (!parsed) return;
  expect(std::has_single_bit(parsed->block_bytes) && parsed->window > 0);
  expect(wire::parse_greeting(wire::encode(*parsed)) == parsed);
}

void immediate(std::span<const std::byte> bytes) {
  std::uint32_t raw = 0;
  if (bytes.size() < sizeof raw) return;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  const auto parsed = wire::parse_immediate(raw);
  if (parsed) expect(wire::encode(*parsed) == raw);
}

void within(std::span<const std::byte> part, std::span<const std::byte> whole) {
  expect(part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size()));
}

void frame(std::span<const std::byte> bytes) {
  wire::FrameReader reader(bytes);
  std::size_t records = 0;
  while (!reader.done()) {
    const auto record = reader.next();
    if (!record) return;
    expect(++records <= bytes.size() / wire::record_header_bytes);
    if (const auto* whole = std::get_if<wire::WholeMessage>(&*record)) within(whole->body, bytes);
    if (const auto* first = std::get_if<wire::FirstPart>(&*record)) {
      within(first->body, bytes);
      expect(first->total > first->body.size());
    }
    if (const auto* next = std::get_if<wire::NextPart>(&*record)) {
      within(next->body, bytes);
      expect(!next->body.empty());
    }
    if (const auto* offer = std::get_if<wire::Offer>(&*record))
      expect(offer->length > 0 && offer->address + offer->length > offer->address &&
             std::uint64_t{offer->offset} + offer->length <= offer->total);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> rest = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 3) {
    case 0:
      greeting(rest);
      break;
    case 1:
      immediate(rest);
      break;
    default:
      frame(rest);
  }
  return 0;
}
