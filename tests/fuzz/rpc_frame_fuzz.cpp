// Bytes from a peer are split into frames, and each body is decompressed if it says so and read as values.
// The first byte chooses the size of the pieces that the rest arrives in; the frames must not depend on it.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <variant>

#include "rpc/codec/codec.hpp"
#include "rpc/wire/compression.hpp"
#include "rpc/wire/frame.hpp"

namespace {

using namespace weir::rpc;

struct Node {
  std::string name;
  std::vector<Node> children;
  std::optional<std::variant<std::monostate, double, std::map<std::string, std::int16_t>>> value;
  std::vector<std::byte> bytes;
};

constexpr FrameLimits limits{.body_bytes = 1 << 16, .attachment_bytes = 1 << 16};

struct Sink final : FrameSink {
  std::size_t frames = 0, bytes = 0;
  bool on_frame(Frame& frame) override {
    ++frames;
    bytes += frame.body.size() + frame.attachment.size();
    if (frame.body.size() != frame.header.body_bytes) std::abort();
    if (frame.attachment.size() != frame.header.attachment_bytes) std::abort();
    std::span<const std::byte> body = frame.body;
    Bytes plain;
    if ((frame.header.flags & FrameFlag::compressed) != 0) {
      const bool fine = decompress(frame.body, all_compressions, limits.body_bytes, plain).has_value();
      if (plain.size() > limits.body_bytes || plain.empty() == fine) std::abort();
      body = plain.span();
    }
    Node node;
    static_cast<void>(MessagePack::read(body, node));
    std::tuple<std::string_view, std::vector<std::uint32_t>> views;
    static_cast<void>(MessagePack::read(body, views));
    MsgpackReader(body).skip();
    // What was read goes through either algorithm and comes back as it was.
    for (const Compression with : {Compression::lz4, Compression::zstd}) {
      Bytes packed, again;
      if (!compress(with, body, packed)) continue;
      if (packed.size() >= body.size()) std::abort();
      if (!decompress(packed.span(), bit_of(with), limits.body_bytes, again)) std::abort();
      if (!std::ranges::equal(again.span(), body)) std::abort();
    }
    return frames < 1000;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{data[0]} + 1;
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  Sink whole, cut;
  FrameReader one(limits), two(limits);
  const bool fine = one.feed(input, whole).has_value();
  bool also_fine = true;
  for (std::size_t at = 0; at < input.size() && also_fine; at += piece)
    also_fine = two.feed(input.subspan(at, std::min(piece, input.size() - at)), cut).has_value();
  if (fine != also_fine || whole.frames != cut.frames || whole.bytes != cut.bytes) std::abort();
  return 0;
}
