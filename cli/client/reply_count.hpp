// Counts the replies in a stream of bytes and keeps nothing of them: what a load generator needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "cli/client/reply_grammar.hpp"

namespace weir::client {

class ReplyCounter {
 public:
  // How many replies ended in these bytes, pushes not counted.
  Result<std::uint64_t> count(std::span<const std::byte> bytes) {
    tally_.replies = 0;
    if (auto fed = grammar_.feed(bytes, tally_); !fed) return std::unexpected(std::move(fed.error()));
    return tally_.replies;
  }

  // Replies that say there is nothing, since this was asked last.
  std::uint64_t take_nulls() { return std::exchange(tally_.nulls, 0); }
  std::uint64_t errors() const { return tally_.errors; }                 // error replies ever seen
  const std::string& first_error() const { return tally_.first_error; }  // its text

 private:
  struct Tally {
    std::uint64_t replies = 0;
    std::uint64_t errors = 0;
    std::uint64_t nulls = 0;
    std::string first_error;
    bool in_error = false;

    void scalar(char type, std::string_view text) {
      if (type == '-' && first_error.empty()) first_error = text;
    }
    void bulk_begin(char type, std::uint64_t) { in_error = type == '!' && first_error.empty(); }
    void bulk_bytes(std::string_view bytes) {
      if (in_error && first_error.size() < 1024) first_error += bytes.substr(0, 1024);
    }
    void bulk_end() { in_error = false; }
    void aggregate(char, std::uint64_t) {}
    void reply_end(char type) {
      replies += type != '>';
      errors += type == '-' || type == '!';
      nulls += type == '_';
    }
  };

  ReplyGrammar grammar_;
  Tally tally_;
};

}  // namespace weir::client
