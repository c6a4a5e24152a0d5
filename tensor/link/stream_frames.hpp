// The protocol over a byte stream: frames <-> messages, transfers and records. Pure.
//
// Each side first sends a greeting (wire.hpp), then frames: u32 kind, u32 index, u64 bytes, little-endian,
// followed by that many bytes. A message is one frame. A transfer is frames of data, in order, for the memory
// that is expected under that index, and then its record. Data are received in place, so a large transfer is
// copied only once, by the kernel. A frame that is longer than its kind allows ends the stream before
// anything is allocated for it.
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
#include "tensor/link/wire.hpp"

namespace weir::tensor {

namespace frames {

enum class Kind : std::uint32_t { message = 1, data = 2, record = 3 };
inline constexpr std::size_t header_bytes = 16;
inline constexpr std::size_t most_data_bytes = std::size_t{16} << 20;  // in one frame

struct Header {
  Kind kind = Kind::message;
  std::uint32_t index = 0;  // of the transfer, for data
  std::uint64_t bytes = 0;
  bool operator==(const Header&) const = default;
};

std::array<std::byte, header_bytes> encode(const Header&);
// Errc::protocol: an unknown kind, or more bytes than the kind allows.
Result<Header> parse_header(std::span<const std::byte, header_bytes>);

}  // namespace frames

// Parses a stream.
class FrameReader {
 public:
  // Receives what was parsed. To end the stream, return false or no room.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual bool on_greeting(std::span<const std::byte> greeting) = 0;
    virtual bool on_message(std::span<const std::byte> message) = 0;
    // Where the next bytes of data for this index go: between 1 and `most` bytes.
    virtual std::span<std::byte> room_for(std::uint32_t index, std::uint64_t most) = 0;
    virtual void filled(std::uint32_t index, std::size_t bytes) = 0;
    virtual bool on_record(const wire::Record& record) = 0;
  };

  explicit FrameReader(Sink& sink);

  // Where to receive the next bytes of the stream; empty once it is over.
  std::span<std::byte> room();
  // Reports that many bytes as received. Returns false once the stream is over; fault() says why, unless the
  // sink ended it.
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
  bool was_full_ = false;     // the buffer, by one receive
  bool direct_ = false;       // room() returned the sink's memory
  frames::Header data_ = {};  // data_.bytes counts down what is still to come
  bool over_ = false;
  std::string fault_;
};

}  // namespace weir::tensor
