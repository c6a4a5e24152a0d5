// Bodies made smaller on the way: what is sent, and what may come.
//
// A body that is compressed goes with FrameFlag::compressed and is
//
//   offset  bytes
//        0      1  how (Compression)
//        1      4  bytes that it was, little endian
//        5         the output of the algorithm: an LZ4 block, or a Zstandard frame
//
// An end compresses only with what the other end said in its `settings` frame that it takes; an end that was
// given no compression takes none. Attachments are never compressed: they are sent from where they lie.
//
// What a peer may make this end allocate is bounded before any memory is taken: the length that it names must
// be within the limit for bodies as they are, and the algorithms write no further. Pure. Threading: any; the
// memory that Zstandard works with is one a thread, not one a connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "rpc/error.hpp"
#include "rpc/wire/bytes.hpp"

namespace weir::rpc {

enum class Compression : std::uint8_t {
  none = 0,
  lz4 = 1,   // fast: about a memory copy for the one that reads
  zstd = 2,  // smaller, at several times the work
};
std::string_view name_of(Compression);

// Of one end of a connection. Only where both ends name an algorithm is anything compressed, and each then
// sends with its own: both take all that there are.
struct CompressionOptions {
  Compression with = Compression::none;
  std::uint32_t from_bytes = 1024;  // smaller bodies go as they are
};

// How many bodies were compressed, from how much to how much.
struct CompressionCounts {
  std::uint64_t bodies = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  CompressionCounts& operator+=(const CompressionCounts& more) {
    bodies += more.bodies;
    bytes_before += more.bytes_before;
    bytes_after += more.bytes_after;
    return *this;
  }
};

// Counts of all connections of a thread, which any thread may read. Relaxed: three sums for display, and no
// conclusion is drawn from their order.
class CompressionTotals {
 public:
  void add(const CompressionCounts& more) {
    bodies_.fetch_add(more.bodies, std::memory_order_relaxed);
    bytes_before_.fetch_add(more.bytes_before, std::memory_order_relaxed);
    bytes_after_.fetch_add(more.bytes_after, std::memory_order_relaxed);
  }
  CompressionCounts now() const {
    return {bodies_.load(std::memory_order_relaxed), bytes_before_.load(std::memory_order_relaxed),
            bytes_after_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> bodies_{0}, bytes_before_{0}, bytes_after_{0};
};

// Of a settings frame: bit i is set if Compression i is taken.
constexpr std::uint32_t bit_of(Compression one) { return 1u << static_cast<unsigned>(one); }
constexpr std::uint32_t all_compressions = bit_of(Compression::lz4) | bit_of(Compression::zstd);

constexpr std::size_t compressed_prefix_bytes = 5;

// Replaces what `to` holds by the compressed body. Returns false if it would not be smaller than `body`.
bool compress(Compression with, std::span<const std::byte> body, Bytes& to);
// Replaces what `to` holds by the decompressed body. Errc::too_large: more than `most_bytes`. Errc::protocol:
// not the output of an algorithm in `accepted`.
Result<void> decompress(std::span<const std::byte> body, std::uint32_t accepted, std::uint32_t most_bytes,
                        Bytes& to);

}  // namespace weir::rpc
