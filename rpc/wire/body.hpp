// A body while it is encoded: contiguous bytes and, if the sending link supports it, references to large
// texts and binaries, which stay in the application's memory until they are written.
//
// What is referred to must stay in place until the frame has ended (frame_link.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rpc/wire/bytes.hpp"

namespace weir::rpc {

// What is shorter is copied: one more piece of a write costs more than that.
inline constexpr std::size_t refer_from_bytes = 32 << 10;

// How long a body will be, at least about; of that, the bytes that it may refer to.
struct BodySize {
  BodySize(std::size_t all = 0, std::size_t referable_bytes = 0)  // NOLINT: codecs may know the first only
      : bytes(all), referable(referable_bytes) {}
  // The size of a text or a binary of that many bytes.
  static BodySize of_contents(std::size_t bytes) { return {bytes, bytes >= refer_from_bytes ? bytes : 0}; }

  std::size_t bytes;
  std::size_t referable;
};

// Bytes that come before byte `position` of what is encoded.
struct Reference {
  std::size_t position;
  std::span<const std::byte> bytes;
};

// Where a body is encoded to. Codecs that only append see the Bytes.
struct BodyPlace {
  BodyPlace(Bytes& bytes, std::vector<Reference>* refer_in = nullptr)  // NOLINT: Bytes are a place
      : encoded(bytes), references(refer_in) {}
  operator Bytes&() const { return encoded; }  // NOLINT
  // Appends contents that stay valid until the frame was ended.
  void append_or_refer(std::span<const std::byte> contents) const {
    if (references != nullptr && contents.size() >= refer_from_bytes)
      references->push_back({encoded.size(), contents});
    else
      encoded.append(contents);
  }

  Bytes& encoded;
  std::vector<Reference>* references;  // null: everything is copied
};

}  // namespace weir::rpc
