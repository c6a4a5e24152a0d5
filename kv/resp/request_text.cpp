#include "kv/resp/request_text.hpp"

#include "kv/text/number.hpp"

namespace weir::kv {

namespace {
void append_count(std::string& out, char kind, std::size_t count) {
  IntText text;
  out += kind;
  out += format_int(static_cast<std::int64_t>(count), text);
  out += "\r\n";
}
}  // namespace

void append_request_head(std::string& out, std::size_t words) { append_count(out, '*', words); }

void append_request_word(std::string& out, RequestWord word) {
  IntText digits;
  const std::string_view text = word.is_number() ? format_int(word.number(), digits) : word.text();
  append_count(out, '$', text.size());
  out += text;
  out += "\r\n";
}

void append_request(std::string& out, std::span<const RequestWord> words) {
  append_request_head(out, words.size());
  for (const RequestWord& word : words) append_request_word(out, word);
}

void append_request(std::string& out, Arguments words) {
  append_request_head(out, words.size());
  for (const Argument& word : words) append_request_word(out, word.text);
}

}  // namespace weir::kv
