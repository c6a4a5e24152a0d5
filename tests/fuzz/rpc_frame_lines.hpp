// Frames of rpc/ as lines of words, which a fuzzer can change without spoiling the frame.
//
//   call 7 shop.echo hello          a request with id 7
//   stream 7 feed.total             a request that begins a stream
//   item 7 "x"  end 7  credit 7 1000  cancel 7  ping 7  credentials 0 alice  settings 0 6
//   reply 7 hello  fail 7 5 text    a reply with a result, one with a status
//
// The last words are values: numbers, nil, true, false, *100 (a 100-byte text), [ ... ] and { ... }; other
// words are text. $c0ff is bytes of the body as they are. A word that begins with a colon changes the frame:
//   :a=9     an attachment of 9 bytes                  :t=9    a timeout of 9 us
//   :z=1     compressed with LZ4; 2: Zstandard         :T      begins with a trace context
//   :Y=9     with the types of the caller              :M      with metadata
//   :f=9     flags inverted                            :c=1    codec
//   :k=9     another kind                              :l=9    9 bytes of the body are missing
//   :h=9.1   byte 9 of the header is 1                 :cut=9  only 9 bytes of the frame
//   :split=9 9 bytes first, then the others            :x=9    9 such frames, with the ids that follow
//   :keep    the attachment in memory that may be kept
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/wire/frame.hpp"

namespace weir::fuzz {

using Words = std::vector<std::string_view>;
Words words_of(std::string_view line);
std::uint64_t number_of(std::string_view word);
// Of a byte string in hexadecimal; what is no digit counts as one.
std::string bytes_of_hex(std::string_view digits);
void write_value(std::span<const std::string_view>& words, rpc::Bytes& out, int depth = 0);

struct FrameLine {
  rpc::FrameHeader header;
  std::string bytes;  // with the attachment
  std::size_t attachment_at = 0;
  std::size_t first_bytes = SIZE_MAX;  // to be sent before the others
  unsigned times = 1;
  bool keep = false;
};
using IdOf = std::function<std::uint64_t(std::string_view word)>;

// `repetition`: which of the frames of the line. Nothing if the line is none.
std::optional<FrameLine> frame_of(std::span<const std::string_view> words, const IdOf& id_of,
                                  unsigned repetition = 0);

}  // namespace weir::fuzz
