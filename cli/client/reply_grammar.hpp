// Parses RESP2 and RESP3 replies as they arrive: a push parser that reads each byte once and keeps
// nothing but a split line. A visitor handles the tokens: the benchmark's counts replies, and
// weir-cli's builds a tree.
//
// Checked and bounded: lengths are parsed strictly and limited, nesting is limited, and no memory is
// allocated just because the peer announced a number. After an error the parser stays in error, because the
// framing of the stream is lost.
//
// A visitor has these functions (spans and views are valid only during the call):
//   scalar(char type, std::string_view text)   + - : , # ( lines, and _ for every spelling of null
//   bulk_begin(char type, std::uint64_t bytes) $ ! =, then bulk_bytes(...) any number of times and bulk_end()
//   aggregate(char type, std::uint64_t count)  * ~ > % |, count as on the wire (pairs for % and |)
//   reply_end(char type)                       a whole top-level reply of that type has been visited
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client/error.hpp"

namespace weir::client {

struct ReplyLimits {
  std::size_t line_bytes = 64 * 1024;                           // an error or status line
  std::uint64_t bulk_bytes = std::uint64_t{512} * 1024 * 1024;  // one string
  std::uint64_t elements = std::uint64_t{1} << 32;              // one aggregate
  std::size_t depth = 128;
};

class ReplyGrammar {
 public:
  explicit ReplyGrammar(ReplyLimits limits = {}) : limits_(limits) {}

  template <class Visitor>
  Result<void> feed(std::span<const std::byte> bytes, Visitor& visitor) {
    const char* at = reinterpret_cast<const char*>(bytes.data());
    const char* const end = at + bytes.size();
    while (at != end && state_ != State::broken) at = step(at, end, visitor);
    if (state_ == State::broken) return fail(ErrorKind::protocol, why_broken_);
    return {};
  }

  // No reply is partly read.
  bool between_replies() const { return state_ == State::line && partial_.empty() && open_.empty(); }

 private:
  enum class State { line, bulk, bulk_end, broken };
  struct Open {             // an aggregate being read
    std::uint64_t missing;  // elements
    char type;
  };

  template <class Visitor>
  const char* step(const char* at, const char* end, Visitor& visitor) {
    switch (state_) {
      case State::line:
        return take_line(at, end, visitor);
      case State::bulk:
        return take_bulk(at, end, visitor);
      case State::bulk_end:
        return take_bulk_end(at, visitor);
      case State::broken:
        break;
    }
    return end;
  }

  template <class Visitor>
  const char* take_line(const char* at, const char* end, Visitor& visitor) {
    const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    const char* const stop = newline ? newline + 1 : end;
    const auto length = static_cast<std::size_t>(stop - at);
    if (partial_.size() + length > limits_.line_bytes) {
      broken("a line longer than " + std::to_string(limits_.line_bytes) + " bytes");
      return end;
    }
    if (!newline) {
      partial_.append(at, length);
      return end;
    }
    if (partial_.empty()) {
      line({at, length}, visitor);
    } else {
      partial_.append(at, length);
      line_.swap(partial_);
      partial_.clear();
      line(line_, visitor);
    }
    return stop;
  }

  template <class Visitor>
  const char* take_bulk(const char* at, const char* end, Visitor& visitor) {
    const auto length = std::min(bulk_missing_, static_cast<std::uint64_t>(end - at));
    visitor.bulk_bytes(std::string_view(at, length));
    bulk_missing_ -= length;
    if (bulk_missing_ == 0) state_ = State::bulk_end;
    return at + length;
  }

  template <class Visitor>
  const char* take_bulk_end(const char* at, Visitor& visitor) {
    if (*at != (expect_newline_ ? '\n' : '\r')) {
      broken("a string that does not end where its length says");
      return at;
    }
    if (expect_newline_) {
      state_ = State::line;
      visitor.bulk_end();
      element_done(bulk_type_, visitor);
    }
    expect_newline_ = !expect_newline_;
    return at + 1;
  }

  // One header line, including its line end.
  template <class Visitor>
  void line(std::string_view text, Visitor& visitor) {
    if (text.size() < 3 || text[text.size() - 2] != '\r') return broken("a line that does not end in CR LF");
    const char type = text[0];
    const auto rest = text.substr(1, text.size() - 3);
    switch (type) {
      case '+':
      case '-':
        return scalar(type, rest, visitor);
      case ':':
        return is_integer(rest) ? scalar(type, rest, visitor) : broken("an integer that is none");
      case ',':
        return rest.empty() ? broken("a double that is none") : scalar(type, rest, visitor);
      case '(':
        return is_big_number(rest) ? scalar(type, rest, visitor) : broken("a big number that is none");
      case '#':
        return rest == "t" || rest == "f" ? scalar(type, rest, visitor) : broken("a boolean that is none");
      case '_':
        return rest.empty() ? scalar(type, rest, visitor) : broken("a null with something in it");
      case '$':
      case '!':
      case '=':
        return bulk(type, rest, visitor);
      case '*':
      case '~':
      case '>':
      case '%':
      case '|':
        return aggregate(type, rest, visitor);
      default:
        return broken("a reply of an unknown type, byte " + std::to_string(static_cast<unsigned char>(type)));
    }
  }

  template <class Visitor>
  void scalar(char type, std::string_view text, Visitor& visitor) {
    visitor.scalar(type, text);
    element_done(type, visitor);
  }

  template <class Visitor>
  void bulk(char type, std::string_view length_text, Visitor& visitor) {
    if (length_text == "-1") return scalar('_', {}, visitor);
    std::uint64_t length = 0;
    if (!is_count(length_text, length)) return broken("a string with a malformed length");
    if (length > limits_.bulk_bytes) return broken("a string of " + std::to_string(length) + " bytes");
    visitor.bulk_begin(type, length);
    bulk_type_ = type;
    bulk_missing_ = length;
    state_ = length ? State::bulk : State::bulk_end;
  }

  template <class Visitor>
  void aggregate(char type, std::string_view count_text, Visitor& visitor) {
    if (count_text == "-1") return scalar('_', {}, visitor);
    std::uint64_t count = 0;
    if (!is_count(count_text, count)) return broken("an aggregate with a malformed count");
    if (count > limits_.elements) return broken("an aggregate of " + std::to_string(count) + " elements");
    if (open_.size() >= limits_.depth)
      return broken("more than " + std::to_string(limits_.depth) + " levels of nesting");
    visitor.aggregate(type, count);
    const bool pairs = type == '%' || type == '|';
    open_.push_back({pairs ? 2 * count : count, type});
    close_full_aggregates(visitor);
  }

  template <class Visitor>
  void element_done(char type, Visitor& visitor) {
    if (open_.empty()) return visitor.reply_end(type);
    --open_.back().missing;
    close_full_aggregates(visitor);
  }

  template <class Visitor>
  void close_full_aggregates(Visitor& visitor) {
    while (!open_.empty() && open_.back().missing == 0) {
      const char type = open_.back().type;
      open_.pop_back();
      if (type == '|') continue;  // an attribute precedes an element and does not count as one
      if (open_.empty()) return visitor.reply_end(type);
      --open_.back().missing;
    }
  }

  static bool is_count(std::string_view text, std::uint64_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty() && text[0] != '-';
  }
  static bool is_integer(std::string_view text) {
    std::int64_t value = 0;
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
  }
  static bool is_big_number(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  void broken(std::string what) {
    state_ = State::broken;
    why_broken_ =
        "Protocol error: the server sent " + std::move(what) + "; is it a RESP server, and TLS as expected?";
  }

  ReplyLimits limits_;
  State state_ = State::line;
  bool expect_newline_ = false;
  char bulk_type_ = 0;
  std::uint64_t bulk_missing_ = 0;
  std::vector<Open> open_;
  std::string partial_;  // a line split over two arrivals
  std::string line_;     // swapped with partial_ to reuse its memory
  std::string why_broken_;
};

}  // namespace weir::client
