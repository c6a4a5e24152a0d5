// Bytes of a connection as HTTP/1.1 requests (RFC 9112). Pure: no I/O, no clock.
//
// Boost.Beast's parser takes the bytes apart; here are the bounds, and what is refused besides: a field that
// counts here and comes twice, a transfer coding other than "chunked", a chunk header without an end. What is
// refused ends the connection, since nobody knows where the next request begins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::rpc::http {

// The fields that count; others are skipped.
enum class Field : std::uint8_t {
  host,
  origin,
  authorization,
  traceparent,
  expect,
  content_encoding,
  transfer_encoding,
  weir_timeout,
  last = weir_timeout,
};

struct Head {
  std::string method;
  std::string target;  // as it came
  bool version_1_0 = false;
  bool keep_alive = true;
  bool has_body = false;
  std::array<std::optional<std::string>, static_cast<std::size_t>(Field::last) + 1> fields;

  std::optional<std::string>& operator[](Field one) { return fields[static_cast<std::size_t>(one)]; }
  const std::optional<std::string>& operator[](Field one) const {
    return fields[static_cast<std::size_t>(one)];
  }
};

// What a request is refused with.
struct Fault {
  unsigned status = 400;
  std::string why;
};

class RequestReader {
 public:
  struct Limits {
    std::uint32_t head_bytes;
    std::uint64_t body_bytes;
  };
  enum class State : std::uint8_t { head, body, whole, broken };

  explicit RequestReader(const Limits& limits);
  ~RequestReader();

  // Takes bytes from the front and returns how many, after one step: the head is complete, the body or a part
  // of it came. 0 in the states `head` and `body`: more must come first, and the rest is offered again with
  // it.
  std::size_t take(std::string_view bytes);
  State state() const { return state_; }
  const Head& head() const { return head_; }  // complete unless the state is `head`
  std::string& body() { return body_; }       // complete in the state `whole`
  const std::string& body() const { return body_; }
  const Fault& fault() const { return fault_; }  // in the state `broken`
  // Begins with the next request.
  void next();

 private:
  class Parser;
  friend class Parser;
  void refuse(unsigned status, std::string why);
  std::size_t head_bytes(std::string_view bytes);
  std::size_t take_head(std::string_view bytes);
  std::size_t parse(std::string_view bytes);

  const Limits limits_;
  State state_ = State::head;
  Head head_;
  std::string body_;
  Fault fault_;
  std::size_t looked_at_ = 0;  // of the head, for its end
  std::unique_ptr<Parser> parser_;
};

}  // namespace weir::rpc::http
