#include "rpc/wire/compression.hpp"

#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>

namespace weir::rpc {

namespace {

// Level 1: data sent at once deserves less time than data that is stored.
constexpr int zstd_level = 1;

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Returns the bytes written to `to`, which has `room`; 0 if they do not fit.
std::size_t lz4(std::span<const std::byte> body, std::byte* to, std::size_t room) {
  if (body.size() > LZ4_MAX_INPUT_SIZE || room > LZ4_MAX_INPUT_SIZE) return 0;
  const int written =
      LZ4_compress_default(reinterpret_cast<const char*>(body.data()), reinterpret_cast<char*>(to),
                           static_cast<int>(body.size()), static_cast<int>(room));
  return written > 0 ? static_cast<std::size_t>(written) : 0;
}

std::size_t zstd(std::span<const std::byte> body, std::byte* to, std::size_t room) {
  static thread_local const std::unique_ptr<ZSTD_CCtx, FreeZstd> context(ZSTD_createCCtx());
  const std::size_t written =
      ZSTD_compressCCtx(context.get(), to, room, body.data(), body.size(), zstd_level);
  return ZSTD_isError(written) != 0 ? 0 : written;
}

// True if `to` was filled exactly.
bool from_lz4(std::span<const std::byte> packed, std::span<std::byte> to) {
  constexpr std::size_t most = std::numeric_limits<int>::max();
  if (packed.size() > most || to.size() > most) return false;
  return LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(to.data()),
                             static_cast<int>(packed.size()),
                             static_cast<int>(to.size())) == static_cast<int>(to.size());
}

bool from_zstd(std::span<const std::byte> packed, std::span<std::byte> to) {
  static thread_local const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  return ZSTD_decompressDCtx(context.get(), to.data(), to.size(), packed.data(), packed.size()) == to.size();
}

std::unexpected<Error> nonsense(const char* why) {
  return fail(Errc::protocol, std::string("a compressed body that cannot be read: ") + why);
}

}  // namespace

std::string_view name_of(Compression one) {
  switch (one) {
    case Compression::none:
      return "none";
    case Compression::lz4:
      return "lz4";
    case Compression::zstd:
      return "zstd";
  }
  return "unknown";
}

bool compress(Compression with, std::span<const std::byte> body, Bytes& to) {
  to.clear();
  if (body.size() <= compressed_prefix_bytes || body.size() > std::numeric_limits<std::uint32_t>::max())
    return false;
  const std::size_t room = body.size() - compressed_prefix_bytes - 1;  // at least one byte smaller
  to.grow(compressed_prefix_bytes + room);
  std::byte* const packed = to.data() + compressed_prefix_bytes;
  const std::size_t written = with == Compression::lz4    ? lz4(body, packed, room)
                              : with == Compression::zstd ? zstd(body, packed, room)
                                                          : 0;
  if (written == 0) return false;
  const auto size = static_cast<std::uint32_t>(body.size());
  to.data()[0] = static_cast<std::byte>(with);
  std::memcpy(to.data() + 1, &size, sizeof size);
  to.truncate(compressed_prefix_bytes + written);
  return true;
}

Result<void> decompress(std::span<const std::byte> body, std::uint32_t accepted, std::uint32_t most_bytes,
                        Bytes& to) {
  to.clear();
  if (body.size() < compressed_prefix_bytes) return nonsense("it is cut off");
  const auto with = std::to_integer<std::uint8_t>(body[0]);
  if (with >= 32 || (accepted >> with & 1u) == 0) return nonsense("nobody agreed on that algorithm");
  std::uint32_t size = 0;
  std::memcpy(&size, body.data() + 1, sizeof size);
  if (size == 0) return nonsense("it says that it was empty");
  if (size > most_bytes)
    return fail(Errc::too_large, "the peer sends a compressed body of " + std::to_string(size) +
                                     " bytes, beyond this end's limit of " + std::to_string(most_bytes));
  const auto packed = body.subspan(compressed_prefix_bytes);
  const std::span<std::byte> place(to.grow(size), size);
  const bool fine = static_cast<Compression>(with) == Compression::lz4    ? from_lz4(packed, place)
                    : static_cast<Compression>(with) == Compression::zstd ? from_zstd(packed, place)
                                                                          : false;
  if (fine) return {};
  to.clear();
  return nonsense("it is damaged, or not as long as it says");
}

}  // namespace weir::rpc
