// Finds where one RESP2 or RESP3 reply ends: "*2\r\n$1\r\na\r\n:1\r\n". For code that passes replies on and
// need not know their contents.
//
// It continues where it stopped when more bytes arrive, so nothing is scanned twice. Announced lengths are
// limited, and no bytes are kept. Nesting needs no stack: only the number of missing elements counts. An
// attribute belongs to the reply that follows it. Threading: none.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::kv {

class ReplyFrame {
 public:
  enum class Status : std::uint8_t { incomplete, whole, failed };

  static constexpr std::size_t longest_line = 64 * 1024;
  static constexpr std::int64_t longest_text = std::int64_t{512} << 20;
  static constexpr std::uint64_t most_elements = std::uint64_t{1} << 32;
  static constexpr std::size_t longest_reply = std::size_t{1} << 30;

  // `input` begins with the reply's first byte.
  Status scan(std::string_view input);
  // After `whole`: the reply's size.
  std::size_t size() const { return at_; }
  void next() { *this = {}; }

 private:
  Status line(std::string_view input, std::size_t end);
  bool count(std::string_view digits, std::uint64_t each);

  std::size_t at_ = 0;         // parsed up to here
  std::size_t searched_ = 0;   // no end of line before it
  std::uint64_t missing_ = 1;  // elements
  std::int64_t text_ = -1;     // size of the text that starts at at_; -1: a line starts there
};

}  // namespace weir::kv
