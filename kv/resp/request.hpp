// Requests as they arrive: RESP arrays of bulk strings, and inline commands.
//
// The parser never owns the input. The caller keeps the bytes of a request from its first byte on until the
// request is complete. One that has arrived whole is read in one go; of any other the parser remembers how
// far it has read, so that nothing is scanned again and again however it trickles in. An argument of at least
// `large_argument` bytes that has not arrived whole is received straight into the block that will be the
// stored value: see wanted().
//
// Invariant: between calls, `read_` bytes of the caller's input are understood and no argument points into
// memory. Threading: none. Errors are Redis's words, ready to be sent; after one the connection is beyond
// repair.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kv/bytes.hpp"

namespace weir::kv {

// One argument of a command. `block` is set when the argument was received into its own block, which the
// command may keep; `text` always holds.
struct Argument {
  std::string_view text;
  Blob* block = nullptr;

  operator std::string_view() const { return text; }
};
using Arguments = std::span<const Argument>;

class RequestParser {
 public:
  static constexpr std::size_t large_argument = 32 * 1024;
  static constexpr std::size_t max_inline = 64 * 1024;      // also the longest length line
  static constexpr std::int64_t max_arguments = INT32_MAX;  // as in Redis; the query buffer's limit is less

  struct Limits {
    std::int64_t max_bulk = 512LL * 1024 * 1024;
    bool authenticated = true;  // strangers may send 10 arguments of 16 KiB each and no more
  };
  enum class Status { incomplete, complete, failed };

  // `input` starts at the request's first byte. May be called again after `complete`, when the input has
  // moved.
  Status parse(std::string_view input, const Limits& limits);

  // After `complete`: the arguments, and how many bytes of the input they took. None at all: an empty
  // request, which is skipped. The views live as long as the input and until next().
  Arguments arguments() const { return arguments_; }
  std::size_t consumed() const { return read_; }
  void next();

  // After `failed`.
  const std::string& error() const { return error_; }

  // After `incomplete`: how many bytes of the input the caller must keep (those behind were taken into a
  // block), and where the next bytes should be received if they can be (empty: no such wish).
  std::size_t kept() const { return kept_; }
  std::span<char> wanted();
  void filled(std::size_t bytes) { filled_ += bytes; }

  // Bytes of arguments held outside the caller's input, what has arrived of an unfinished one included.
  std::size_t held_bytes() const { return held_ + filled_; }
  // Bytes of the list of arguments, for many of them; next() gives them back.
  std::size_t list_bytes() const {
    return arguments_.capacity() <= few ? 0 : arguments_.capacity() * sizeof(Argument);
  }

 private:
  static constexpr std::size_t few = 6;  // arguments need no list on the heap
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
  // Between calls the caller moves its input; then follow() moves the texts that lie there.
  absl::InlinedVector<Argument, few> arguments_;
  const char* input_ = nullptr;             // where the input was that they lie in
  absl::InlinedVector<BlobRef, 1> blocks_;  // of the arguments that have one
  std::vector<std::string> inline_words_;
  BlobRef large_;  // the argument under construction, with room for its CR LF
  std::size_t filled_ = 0;
  std::size_t held_ = 0;
  std::string error_;
};

}  // namespace weir::kv
