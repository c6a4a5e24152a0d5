// Finds where one request of a replication stream ends: "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n". A newline alone is
// also a request, with no meaning.
//
// It continues where it stopped when more bytes arrive, so nothing is scanned twice. Announced lengths are
// limited, and no bytes are kept. Threading: none.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::kv::repl {

class RequestFrame {
 public:
  enum class Status : std::uint8_t { incomplete, whole, failed };

  struct Limits {
    std::int64_t word = 512LL << 20;
    std::size_t request = std::size_t{1} << 30;
  };

  // `input` begins with the request's first byte.
  Status scan(std::string_view input, const Limits& limits);
  // After `whole`: the request's size.
  std::size_t size() const { return at_; }
  void next() { *this = {}; }

 private:
  Status count_line(std::string_view input, char kind, std::int64_t most, std::int64_t& count);

  std::size_t at_ = 0;
  std::int64_t words_left_ = -1;  // -1: not known yet
  std::int64_t word_ = -1;        // size of the word that starts at at_; -1: not known yet
};

}  // namespace weir::kv::repl
