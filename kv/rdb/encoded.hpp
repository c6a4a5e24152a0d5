// The bytes of a snapshot while it is written.
//
// Compressing takes ten times as long as copying, and the thread that encodes is the one that serves clients.
// So long texts are stored uncompressed and without their length. finish() writes both, compressed where that
// helps, and may run in another thread: an Encoded refers to nothing but itself.
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
  // Texts that are integers take at most five bytes, as Redis writes them.
  void put_text(std::string_view text);
  void put_double(double value);        // eight bytes
  void put_milliseconds(std::int64_t);  // eight bytes
  void put_aux(std::string_view name, std::string_view value);

  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size(); }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  // What it takes from the heap.
  std::size_t memory() const;
  // How much finish() allocates at most, besides what `out` has.
  std::size_t memory_to_finish(Compression compression) const;
  // Appends the final bytes to `out`.
  void finish(Compression compression, std::string& out) const;

 private:
  struct Text {
    std::size_t offset, size;
  };

  std::size_t room_for_all() const;  // at most so long finish() makes it

  std::string bytes_;
  std::vector<Text> texts_;  // long texts in bytes_ that lack their length, in order
};

// The header of a file.
void put_header(Encoded& out, int version = version_written);
void put_header_of_valkey(Encoded& out);
// The end of a file. `sum` is the checksum of everything before; it is extended by the end's opcode.
std::string end_of_file(std::uint64_t sum, bool with_checksum);

}  // namespace weir::kv::rdb
