// What orders the entries of a stream: milliseconds, and a number among the entries of one millisecond.
#pragma once

#include <array>
#include <charconv>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace weir::kv {

struct StreamId {
  std::uint64_t ms = 0;
  std::uint64_t seq = 0;

  static constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  static constexpr StreamId highest() { return {most, most}; }

  friend constexpr auto operator<=>(const StreamId&, const StreamId&) = default;
  constexpr bool is_zero() const { return ms == 0 && seq == 0; }

  // Nothing: there is none.
  constexpr std::optional<StreamId> next() const {
    if (seq != most) return StreamId{ms, seq + 1};
    if (ms != most) return StreamId{ms + 1, 0};
    return std::nullopt;
  }
  constexpr std::optional<StreamId> previous() const {
    if (seq != 0) return StreamId{ms, seq - 1};
    if (ms != 0) return StreamId{ms - 1, most};
    return std::nullopt;
  }
};

// "ms-seq" in a buffer of its own.
class StreamIdText {
 public:
  explicit StreamIdText(StreamId id) {
    char* end = std::to_chars(text_.data(), text_.data() + text_.size(), id.ms).ptr;
    *end++ = '-';
    end = std::to_chars(end, text_.data() + text_.size(), id.seq).ptr;
    size_ = static_cast<std::size_t>(end - text_.data());
  }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 44> text_;
  std::size_t size_;
};

}  // namespace weir::kv
