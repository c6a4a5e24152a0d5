// Reads requests back from a log file, in the form in which the server writes them.
//
// Only that form is taken: arrays of bulk strings; lines that begin with '#' between two requests are passed
// over (Redis writes the time in such). Memory is bounded by the bytes that are there, whatever lengths the
// file claims. Where the file ends in the middle of a request it says so, apart from bytes that are no
// request at all.
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
  // Fills a place with the next bytes; 0: there are no more.
  using Source = std::function<std::size_t(char* place, std::size_t most)>;
  enum class Next : std::uint8_t { request, end, truncated, malformed };

  explicit LogReader(Source source) : source_(std::move(source)) {}

  Next next();
  // After Next::request, until the next call.
  Arguments arguments() const { return arguments_; }
  // How many bytes of the file were whole requests.
  std::uint64_t whole_bytes() const { return whole_; }

  static constexpr std::size_t longest_word = std::size_t{4} << 30;
  static constexpr std::int64_t most_words = 1 << 30;

 private:
  struct Piece {
    std::size_t offset, size;  // from begin_
  };
  enum class Step : std::uint8_t { done, truncated, malformed };

  bool refill();
  Step take_number(char kind, std::int64_t most, std::int64_t& value);
  Step take_word();
  Step take_request();
  Step skip_line();

  Source source_;
  std::string buffer_;
  std::size_t begin_ = 0;   // of the request that is read
  std::size_t read_ = 0;    // what is before is understood
  std::size_t filled_ = 0;  // what is before came from the source
  std::uint64_t whole_ = 0;
  std::vector<Piece> pieces_;
  std::vector<Argument> arguments_;
};

}  // namespace weir::kv::aof
