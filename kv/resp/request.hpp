// Parses incoming requests: RESP arrays of bulk strings, and inline commands.
//
// The parser never owns the input: the caller keeps the bytes of a request, from its first one, until
// the request is complete. A complete request is read in one go. For any other the parser remembers
// how far it has read, so that nothing is scanned twice however slowly it arrives. An argument of at
// least `large_argument` bytes that is incomplete is received straight into the block that will be the
// stored value: see wanted().
//
// Invariant: between calls, `read_` bytes of the caller's input are parsed. Arguments within the input are
// adjusted when it moves (follow()). Threading: none. Errors are Redis's texts, ready to be sent; after an
// error the connection is beyond repair.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kv/text/bytes.hpp"

namespace weir::kv {

// One argument of a command. `block` is set if the argument was received into its own block, which the
// command may keep; `text` is always valid.
struct Argument {
  std::string_view text;
  Blob* block = nullptr;

  operator std::string_view() const { return text; }
};
using Arguments = std::span<const Argument>;

class RequestParser {
 public:
  static constexpr std::size_t large_argument = 32 * 1024;
  // A block begins with this and grows as its bytes come: what a client announces costs nothing.
  static constexpr std::size_t first_block = 1024 * 1024;
  static constexpr std::size_t max_inline = 64 * 1024;      // also the longest length line
  static constexpr std::int64_t max_arguments = INT32_MAX;  // as in Redis; the query buffer's limit is less

  struct Limits {
    std::int64_t max_bulk = 512LL * 1024 * 1024;
    bool authenticated = true;  // strangers may send at most 10 arguments of 16 KiB each
  };
  enum class Status { incomplete, complete, failed };

  // `input` starts at the request's first byte. After `complete` it may be called again,
  // if the input has moved.
  Status parse(std::string_view input, const Limits& limits);

  // After `complete`: the arguments, and how many bytes of the input they took. No arguments: an empty
  // request, which is skipped. The views are valid as long as the input, and until next().
  Arguments arguments() const { return arguments_; }
  std::size_t consumed() const { return read_; }
  void next();

  // After `failed`.
  const std::string& error() const { return error_; }

  // After `incomplete`: how many bytes of the input the caller must keep (later ones were taken into a
  // block), and where the next bytes should be received if possible (empty: anywhere).
  std::size_t kept() const { return kept_; }
  std::span<char> wanted();
  void filled(std::size_t bytes);

  // Bytes of arguments outside the caller's input, including the received part of an unfinished one.
  std::size_t held_bytes() const { return held_ + filled_; }
  // Size of a long list of arguments; next() frees it.
  std::size_t list_bytes() const {
    return arguments_.capacity() <= few ? 0 : arguments_.capacity() * sizeof(Argument);
  }

 private:
  static constexpr std::size_t few = 6;  // so many arguments need no heap memory
  static_assert(std::is_trivially_copyable_v<Argument>, "so that a list of very many grows fast");

  Status parse_inline(std::string_view input);
  Status parse_array(std::string_view input, const Limits& limits);
  bool parse_whole(std::string_view input, const Limits& limits);
  bool parse_count(std::string_view input, const Limits& limits, Status& status);
  Status parse_bulks(std::string_view input, const Limits& limits);
  void follow(std::string_view input);
  Status fail(std::string text);

  std::size_t read_ = 0;
  std::size_t kept_ = 0;
  std::int64_t bulks_left_ = -1;   // -1: the array's length is not known yet
  std::int64_t bulk_length_ = -1;  // -1: the next bulk's length is not known yet
  // The caller may move its input between calls; follow() then adjusts the texts in it.
  absl::InlinedVector<Argument, few> arguments_;
  const char* input_ = nullptr;             // where the input was when they were set
  absl::InlinedVector<BlobRef, 1> blocks_;  // of the arguments that have one
  std::vector<std::string> inline_words_;
  BlobRef large_;  // the unfinished argument, with room for CR LF
  std::size_t filled_ = 0;
  std::size_t held_ = 0;
  std::string error_;
};

}  // namespace weir::kv
