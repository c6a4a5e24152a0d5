// Bytes of a snapshot while they are written.
//
// Compressing takes ten times as long as copying, and the encoding thread is the one that serves clients. So
// long texts are put in as they are, and without their length; finish() writes both, compressed where that
// helps. It may do so in another thread: encoded data refers to nothing but itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kv/rdb/format.hpp"

namespace weir::kv::rdb {

enum class Compression : std::uint8_t { none, lzf };

class Encoded {
 public:
  void put_type(ValueType type) { bytes_.push_back(static_cast<char>(type)); }
  void put_opcode(Opcode code) { bytes_.push_back(static_cast<char>(code)); }
  void put_raw(std::string_view bytes) { bytes_.append(bytes); }
  void put_byte(std::uint8_t byte) { bytes_.push_back(static_cast<char>(byte)); }
  void put_length(std::uint64_t length);
  // Integers take up to five bytes, as Redis writes them.
  void put_text(std::string_view text);
  void put_double(double value);        // eight bytes
  void put_milliseconds(std::int64_t);  // eight bytes
  void put_aux(std::string_view name, std::string_view value);

  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size(); }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  // Appends the final bytes to `out`.
  void finish(Compression compression, std::string& out) const;

 private:
  struct Text {
    std::size_t offset, size;
  };

  std::string bytes_;
  std::vector<Text> texts_;  // that stand in bytes_ without their lengths, in order
};

// The first bytes of a file.
void put_header(Encoded& out);
// Its last: `sum` is the checksum of all before, and of the opcode that is put here; 0: not wanted.
std::string end_of_file(std::uint64_t sum, bool with_checksum);

}  // namespace weir::kv::rdb
