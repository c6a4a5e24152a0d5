// Writes RESP2 or RESP3 replies into a client's queue. One Reply a client; HELLO changes its protocol.
//
// What RESP2 lacks is written as Redis writes it there: maps as flat arrays, sets and pushes as arrays,
// doubles and big numbers as bulk strings, booleans as 0 and 1. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "kv/bytes.hpp"
#include "kv/resp/reply_queue.hpp"

namespace weir::kv {

enum class Protocol : std::uint8_t { resp2 = 2, resp3 = 3 };

class Reply {
 public:
  static constexpr std::size_t by_reference_size =
      64 * 1024;  // values from here on are not copied into the queue

  explicit Reply(ReplyQueue& queue) : queue_(queue) {}

  Protocol protocol = Protocol::resp2;
  std::uint64_t errors = 0;  // replies that began with '-'
  std::string last_code;     // the first word of the last of them: "WRONGTYPE"

  bool resp3() const { return protocol == Protocol::resp3; }

  void raw(std::string_view bytes) { queue_.append(bytes); }
  void simple(std::string_view text);
  void ok() { raw("+OK\r\n"); }
  // `text` with its code: "ERR no such key". CR and LF become spaces: an error is one line.
  void error(std::string_view text);
  void integer(std::int64_t value) { number(':', value); }
  void bulk(std::string_view bytes);
  void bulk(const Bytes& bytes);  // large ones by reference
  void bulk_int(std::int64_t value);
  void null() { raw(resp3() ? std::string_view("_\r\n") : std::string_view("$-1\r\n")); }
  void null_array() { raw(resp3() ? std::string_view("_\r\n") : std::string_view("*-1\r\n")); }
  void array(std::size_t count) { number('*', static_cast<std::int64_t>(count)); }
  void map(std::size_t pairs) { resp3() ? number('%', as_count(pairs)) : number('*', as_count(pairs * 2)); }
  void set(std::size_t count) { number(resp3() ? '~' : '*', as_count(count)); }
  void push(std::size_t count) { number(resp3() ? '>' : '*', as_count(count)); }
  void real(double value);
  void boolean(bool value);
  void verbatim(std::string_view format, std::string_view text);  // format: three letters
  void bulks(std::initializer_list<std::string_view> texts);      // an array of bulk strings

  ReplyQueue& queue() { return queue_; }

 private:
  static std::int64_t as_count(std::size_t n) { return static_cast<std::int64_t>(n); }
  void number(char kind, std::int64_t value);

  ReplyQueue& queue_;
};

}  // namespace weir::kv
