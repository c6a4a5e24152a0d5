// The protocol over a stream of bytes: frames <-> messages, transfers and records. Pure.
//
// First a greeting each way (wire.hpp), then frames: u32 kind, u32 index, u64 bytes, little-endian, then that
// many bytes. A message is one frame; a transfer is frames of data, in order, into the memory that is
// expected under that index, and its record. Data are placed where they belong as they come, so a large
// transfer is copied once by the kernel and by nobody else. What is longer than it may be ends the stream
// before anything is taken for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/error.hpp"
#include "tensor/wire.hpp"

namespace weir::tensor {

namespace frames {

enum class Kind : std::uint32_t { message = 1, data = 2, record = 3 };
inline constexpr std::size_t header_bytes = 16;
inline constexpr std::size_t most_data_bytes = std::size_t{16} << 20;  // of one frame

struct Header {
  Kind kind = Kind::message;
  std::uint32_t index = 0;  // of data
  std::uint64_t bytes = 0;
  bool operator==(const Header&) const = default;
};

std::array<std::byte, header_bytes> encode(const Header&);
// Errc::protocol: an unknown kind, or more bytes than its kind may have.
Result<Header> parse_header(std::span<const std::byte, header_bytes>);

}  // namespace frames

// Takes a stream apart.
class FrameReader {
 public:
  // What comes out. A sink that returns false, or no room, has had enough: the stream is over.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual bool on_greeting(std::span<const std::byte> greeting) = 0;
    virtual bool on_message(std::span<const std::byte> message) = 0;
    // Where the next bytes of data for this index go: from 1 to `most` of them.
    virtual std::span<std::byte> room_for(std::uint32_t index, std::uint64_t most) = 0;
    virtual void filled(std::uint32_t index, std::size_t bytes) = 0;
    virtual bool on_record(const wire::Record& record) = 0;
  };

  explicit FrameReader(Sink& sink);

  // Where the next bytes of the stream are to be put; empty when it is over.
  std::span<std::byte> room();
  // That many are there. False: it is over, and fault() says why, if the sink does not.
  bool came(std::size_t bytes);
  const std::string& fault() const { return fault_; }

 private:
  bool take_frames();
  bool take_whole(const frames::Header& header, std::span<const std::byte> payload);
  bool place();
  bool broke(std::string why);

  Sink& sink_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool greeted_ = false;
  bool direct_ = false;       // room() gave the sink's memory
  frames::Header data_ = {};  // data_.bytes of it are still to come
  bool over_ = false;
  std::string fault_;
};

}  // namespace weir::tensor
