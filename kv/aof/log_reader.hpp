// Reads requests from a log file, in the form in which the server writes them.
//
// It accepts only that form: arrays of bulk strings. Lines that begin with '#' between two
// requests are no requests (Redis writes the time there, this server its place in the history). Memory is
// bounded by the bytes present, whatever lengths the file claims. A file that ends within a request is
// reported differently from bytes that are no request.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/resp/request.hpp"

namespace weir::kv::aof {

class LogReader {
 public:
  // Fills `place` with the next bytes; 0: end of input.
  using Source = std::function<std::size_t(char* place, std::size_t most)>;
  enum class Next : std::uint8_t { request, end, truncated, malformed };

  explicit LogReader(Source source) : source_(std::move(source)) {}

  Next next();
  // Valid after Next::request, until the next call.
  Arguments arguments() const { return arguments_; }
  // The last such line, if no request followed it. Longer ones than a note is are dropped.
  const std::string& note() const { return note_; }
  // How many bytes of the file were complete requests.
  std::uint64_t whole_bytes() const { return whole_; }

  static constexpr std::size_t longest_note = 256;
  static constexpr std::size_t longest_word = std::size_t{4} << 30;
  static constexpr std::int64_t most_words = 1 << 30;

 private:
  struct Piece {
    std::size_t offset, size;  // offset from begin_
  };
  enum class Step : std::uint8_t { done, truncated, malformed };

  bool refill();
  Step take_number(char kind, std::int64_t most, std::int64_t& value);
  Step take_word();
  Step take_request();
  Step skip_line();

  Source source_;
  std::string buffer_;
  std::size_t begin_ = 0;   // start of the current request
  std::size_t read_ = 0;    // end of the parsed bytes
  std::size_t filled_ = 0;  // end of the bytes from the source
  std::uint64_t whole_ = 0;
  std::string note_;
  std::vector<Piece> pieces_;
  std::vector<Argument> arguments_;
};

}  // namespace weir::kv::aof
