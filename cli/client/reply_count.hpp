// Counts the replies in a stream of bytes and keeps none of them: for load generators.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "cli/client/reply_grammar.hpp"

namespace weir::client {

class ReplyCounter {
 public:
  // How MOVED and ASK count: a client of a cluster follows them.
  enum class Redirects { are_errors, are_counted };
  struct Redirected {
    std::uint64_t moved = 0, asked = 0;
  };

  explicit ReplyCounter(Redirects redirects = Redirects::are_errors) { tally_.follow = redirects; }
  // For a new connection: forgets any partial reply.
  void begin_anew() { *this = ReplyCounter(tally_.follow); }

  // How many replies ended within these bytes, without pushes.
  Result<std::uint64_t> count(std::span<const std::byte> bytes) {
    tally_.replies = 0;
    if (auto fed = grammar_.feed(bytes, tally_); !fed) return std::unexpected(std::move(fed.error()));
    return tally_.replies;
  }

  // Redirections since the last call.
  Redirected take_redirects() { return std::exchange(tally_.redirected, {}); }
  // Null replies since the last call.
  std::uint64_t take_nulls() { return std::exchange(tally_.nulls, 0); }
  std::uint64_t errors() const { return tally_.errors; }                 // error replies so far
  const std::string& first_error() const { return tally_.first_error; }  // the text of the first one

 private:
  struct Tally {
    enum class Kind { other, moved, asked };

    Redirects follow = Redirects::are_errors;
    Redirected redirected;
    Kind error_kind = Kind::other;  // of the last error
    std::uint64_t replies = 0;
    std::uint64_t errors = 0;
    std::uint64_t nulls = 0;
    std::string first_error;
    bool in_error = false;

    void scalar(char type, std::string_view text) {
      if (type != '-') return;
      error_kind = follow == Redirects::are_errors ? Kind::other
                   : text.starts_with("MOVED ")    ? Kind::moved
                   : text.starts_with("ASK ")      ? Kind::asked
                                                   : Kind::other;
      if (first_error.empty() && error_kind == Kind::other) first_error = text;
    }
    void bulk_begin(char type, std::uint64_t) { in_error = type == '!' && first_error.empty(); }
    void bulk_bytes(std::string_view bytes) {
      if (in_error && first_error.size() < 1024) first_error += bytes.substr(0, 1024);
    }
    void bulk_end() { in_error = false; }
    void aggregate(char, std::uint64_t) {}
    void reply_end(char type) {
      replies += type != '>';
      errors += (type == '-' && error_kind == Kind::other) || type == '!';
      redirected.moved += type == '-' && error_kind == Kind::moved;
      redirected.asked += type == '-' && error_kind == Kind::asked;
      nulls += type == '_';
    }
  };

  ReplyGrammar grammar_;
  Tally tally_;
};

}  // namespace weir::client
