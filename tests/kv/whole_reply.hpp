// Finds the end of a RESP reply.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::kv::testing {

// The length of the reply at the front of `text`; 0 while it is incomplete, or if no reply in RESP2 or RESP3
// begins like that.
inline std::size_t whole_reply(std::string_view text) {
  const std::size_t line = text.find("\r\n");
  if (line == std::string_view::npos) return 0;
  std::size_t end = line + 2;
  std::int64_t count = 0;
  std::from_chars(text.data() + 1, text.data() + line, count);
  switch (text[0]) {
    case '+':
    case '-':
    case ':':
    case ',':
    case '#':
    case '_':
    case '(':
      return end;
    case '$':
    case '=':
      if (count < 0) return end;
      end += static_cast<std::size_t>(count) + 2;
      return end <= text.size() ? end : 0;
    case '*':
    case '~':
    case '>':
    case '%':
      if (text[0] == '%') count *= 2;
      for (; count > 0; --count) {
        const std::size_t element = end < text.size() ? whole_reply(text.substr(end)) : 0;
        if (element == 0) return 0;
        end += element;
      }
      return end;
    default:
      return 0;
  }
}

}  // namespace weir::kv::testing
