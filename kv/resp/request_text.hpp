// Requests as text: RESP arrays of bulk strings, as clients send them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kv/resp/request.hpp"
#include "kv/text/bytes.hpp"

namespace weir::kv {

// One word of a request that this server writes: text, or a number that is formatted
// only when it is written.
class RequestWord {
 public:
  RequestWord(std::string_view text) : text_(text) {}
  RequestWord(const char* text) : text_(text) {}
  RequestWord(const std::string& text) : text_(text) {}
  RequestWord(const Bytes& bytes) : text_(bytes.view()) {}
  RequestWord(const Argument& argument) : text_(argument.text) {}
  RequestWord(std::int64_t number) : number_(number), is_number_(true) {}

  bool is_number() const { return is_number_; }
  std::int64_t number() const { return number_; }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
  std::int64_t number_ = 0;
  bool is_number_ = false;
};

void append_request_head(std::string& out, std::size_t words);
void append_request_word(std::string& out, RequestWord word);
void append_request(std::string& out, std::span<const RequestWord> words);
void append_request(std::string& out, Arguments words);

}  // namespace weir::kv
