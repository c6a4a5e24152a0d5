// Reads the bytes of a snapshot, from memory or from a source that delivers them piece by piece.
//
// Errors stick: after the first one every read returns nothing (0, an empty text) and failed() is true, so
// callers check once per loop and not after each byte. Memory is bounded by the bytes that really arrive, and
// for decompressed texts by a budget.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kv/rdb/format.hpp"

namespace weir::kv::rdb {

class Source {
 public:
  virtual ~Source() = default;
  // Reads at most `most` bytes; 0 means the end.
  virtual std::size_t read(char* into, std::size_t most) = 0;
};

class Reader {
 public:
  // Limit for the total size of decompressed texts, unless another is given.
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};

  explicit Reader(std::string_view bytes, std::uint64_t decompressed_most = no_limit)
      : rest_(bytes), budget_(decompressed_most) {}
  // Also computes a checksum of all bytes read.
  explicit Reader(Source& source);

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  void fail(Error::Kind kind, std::string what) {
    if (!error_) error_ = Error{kind, std::move(what)};
    rest_ = no_bytes;
  }
  // Prefixes the error with where it happened.
  void explain(const std::string& where) { error_->what.insert(0, where); }
  void corrupt(std::string what) { fail(Error::Kind::corrupt, std::move(what)); }

  std::uint8_t byte();
  std::uint64_t length();
  double eight_byte_double();
  double text_double();  // the scores of the oldest sorted sets
  std::int64_t milliseconds();
  std::int32_t seconds();
  std::uint64_t stored_checksum();
  float four_byte_float();

  // A text, valid until the next read.
  std::string_view text();
  // `size` raw bytes, valid until the next read.
  std::string_view raw(std::uint64_t size);

  // In memory: nothing is left. With a source: always false, since it may have more.
  bool at_end() const { return rest_.empty() && source_ == nullptr; }
  std::size_t left() const { return rest_.size(); }

  // The checksum of everything read from a source; 0 for memory.
  std::uint64_t sum();
  std::uint64_t bytes_read() const { return taken_ - rest_.size(); }

 private:
  static constexpr std::size_t buffer_size = 64 * 1024;
  // Used after a failure for what is left and what is returned. Not a null pointer: memcpy() may not be given
  // one, even for no bytes.
  static constexpr std::string_view no_bytes = "";

  template <class Number>
  Number fixed();
  bool refill();
  void count();
  std::string_view decompressed();
  std::string_view integer(std::int64_t value);

  std::string_view rest_ = no_bytes;
  Source* source_ = nullptr;
  std::unique_ptr<char[]> buffer_;
  std::size_t counted_ = 0;  // how much of the buffer is in the checksum
  std::uint64_t sum_ = 0;
  std::uint64_t taken_ = 0;  // bytes taken from the source
  std::uint64_t budget_ = no_limit;
  std::string scratch_, unpacked_;
  std::optional<Error> error_;
};

}  // namespace weir::kv::rdb
