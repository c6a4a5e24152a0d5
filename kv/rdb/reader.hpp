// Bytes of a snapshot while they are read: from memory, or from a source that gives them piece by piece.
//
// Errors stick. After the first one every read gives nothing (0, an empty text) and failed() is true, so
// callers check once per loop, not after each byte. Memory is bounded by the bytes that really come, and for
// compressed texts by a budget.
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
  // Up to `most` bytes; 0: there are no more.
  virtual std::size_t read(char* into, std::size_t most) = 0;
};

class Reader {
 public:
  // What compressed texts may become in all, unless told.
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};

  explicit Reader(std::string_view bytes, std::uint64_t decompressed_most = no_limit)
      : rest_(bytes), budget_(decompressed_most) {}
  // With a checksum of all that is read.
  explicit Reader(Source& source);

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  void fail(Error::Kind kind, std::string what) {
    if (!error_) error_ = Error{kind, std::move(what)};
    rest_ = no_bytes;
  }
  // Where it happened, before what happened.
  void explain(const std::string& where) { error_->what.insert(0, where); }
  void corrupt(std::string what) { fail(Error::Kind::corrupt, std::move(what)); }

  std::uint8_t byte();
  std::uint64_t length();
  double eight_byte_double();
  double text_double();  // of the oldest sorted sets
  std::int64_t milliseconds();
  std::int32_t seconds();
  std::uint64_t stored_checksum();
  float four_byte_float();

  // A text. Valid until the next read.
  std::string_view text();
  // `size` bytes as they are. Valid until the next read.
  std::string_view raw(std::uint64_t size);

  // Of memory: nothing is left. Of a source: nobody knows.
  bool at_end() const { return rest_.empty() && source_ == nullptr; }
  std::size_t left() const { return rest_.size(); }

  // Of everything that was read from a source; from memory it is 0.
  std::uint64_t sum();
  std::uint64_t bytes_read() const { return taken_ - rest_.size(); }

 private:
  static constexpr std::size_t buffer_size = 64 * 1024;
  // What is left, and what is returned, after a failure: never a null pointer, which may not be copied from,
  // not even no bytes.
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
  std::size_t counted_ = 0;  // how much of the buffer the checksum stands for
  std::uint64_t sum_ = 0;
  std::uint64_t taken_ = 0;  // from the source
  std::uint64_t budget_ = no_limit;
  std::string scratch_, unpacked_;
  std::optional<Error> error_;
};

}  // namespace weir::kv::rdb
