// Parses what another rank sends to NCCL's plugin: handles, private data, offers in memory that
// it writes, and immediates.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "nccl/books.hpp"

namespace {

using namespace weir::nccl;

void require(bool holds) {
  if (!holds) std::abort();
}

// A handle that is taken names an address, and made again of it is the same one.
void handles(std::span<const std::byte> bytes) {
  Handle handle{};
  if (bytes.size() < sizeof handle) return;
  std::memcpy(&handle, bytes.data(), sizeof handle);
  const auto address = address_of(handle);
  if (!address) return;
  const Handle again = make_handle(*address, handle.secret);
  require(address_of(again) == address && again.secret == handle.secret);
}

// The whole input is a sender's first rows: whatever stands there, an offer is taken at most once.
void offers(std::span<const std::byte> bytes) {
  const auto rows = std::make_unique<std::array<OfferRow, slots>>();
  std::memcpy(rows->data(), bytes.data(), std::min(bytes.size(), sizeof *rows));
  OfferBook book{std::span<const OfferRow, slots>(*rows)};
  std::array<bool, slots * max_group> taken{};
  for (int turn = 0; turn < 64; ++turn) {
    const std::int32_t tag =
        (*rows)[book.groups_used_up() % slots][static_cast<std::size_t>(turn) % max_group].tag;
    const auto offer = book.find(tag);
    if (!offer) continue;
    const std::size_t index = offer->arrival.slot * max_group + offer->arrival.member;
    require(index < taken.size() && !taken[index]);
    taken[index] = true;
    book.take(*offer);
  }
}

// Messages to a receiver with four groups open: none is counted twice, nor longer than its buffer.
void arrivals(std::span<const std::byte> bytes) {
  const auto book = std::make_unique<GroupBook>();
  const std::array<std::size_t, 4> rooms{100, 0, 4096, 1};
  std::size_t wanted = 0;
  for (std::size_t count = 1; count <= rooms.size(); ++count, wanted += count - 1)
    book->open(std::span(rooms).first(count));
  std::size_t counted = 0;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::array<std::uint32_t, 2> words{};
    std::memcpy(words.data(), bytes.data(), 8);
    const auto which = arrival(words[0]);
    if (which && book->arrived(*which, words[1])) ++counted;
  }
  require(counted <= wanted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  handles(bytes);
  static_cast<void>(parse_hello(bytes));
  static_cast<void>(is_welcome(bytes));
  if (size > 0) offers(bytes);
  arrivals(bytes);
  return 0;
}
