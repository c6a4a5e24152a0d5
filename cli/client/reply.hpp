// A reply as a value, and the parser that builds it from arriving bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/client/reply_grammar.hpp"

namespace weir::client {

enum class ReplyType : char {
  status = '+',
  error = '-',  // includes RESP3's blob errors
  integer = ':',
  real = ',',
  boolean = '#',
  big_number = '(',
  null = '_',
  string = '$',
  verbatim = '=',  // text without its "txt:" mark
  array = '*',
  set = '~',
  push = '>',
  map = '%',  // elements: key, value, key, value
};

struct Reply {
  ReplyType type = ReplyType::null;
  std::string text;             // for every type that is not an aggregate, as received; boolean: "t" or "f"
  std::vector<Reply> elements;  // for aggregates

  bool is_error() const { return type == ReplyType::error; }
  bool is_aggregate() const {
    return type == ReplyType::array || type == ReplyType::set || type == ReplyType::push ||
           type == ReplyType::map;
  }
  bool operator==(const Reply&) const = default;
};

class ReplyParser {
 public:
  explicit ReplyParser(ReplyLimits limits = {}) : grammar_(limits) {}

  Result<void> feed(std::span<const std::byte> bytes) { return grammar_.feed(bytes, builder_); }

  // The oldest complete reply that was not taken yet. Attributes are parsed and dropped.
  std::optional<Reply> next();

  bool has_reply() const { return !builder_.whole.empty(); }
  bool between_replies() const { return grammar_.between_replies() && builder_.whole.empty(); }

 private:
  struct Open {
    Reply reply;
    std::uint64_t missing;
    bool attribute;
  };
  struct Builder {
    void scalar(char type, std::string_view text);
    void bulk_begin(char type, std::uint64_t bytes);
    void bulk_bytes(std::string_view bytes) { bulk.text += bytes; }
    void bulk_end();
    void aggregate(char type, std::uint64_t count);
    void reply_end(char) {}
    void place(Reply&&);  // adds it to the current aggregate, or to the complete replies

    std::vector<Open> open;
    Reply bulk;
    std::deque<Reply> whole;
  };

  ReplyGrammar grammar_;
  Builder builder_;
};

}  // namespace weir::client
