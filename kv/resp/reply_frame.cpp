#include "kv/resp/reply_frame.hpp"

#include <algorithm>

#include "kv/text/number.hpp"

namespace weir::kv {

// Counts an aggregate's elements, `each` for each of its units. "-1" is a null.
bool ReplyFrame::count(std::string_view digits, std::uint64_t each) {
  if (digits == "-1") return true;
  const auto number = parse_int(digits);
  if (!number || *number < 0 || static_cast<std::uint64_t>(*number) > most_elements) return false;
  missing_ += static_cast<std::uint64_t>(*number) * each;
  return missing_ <= most_elements;
}

ReplyFrame::Status ReplyFrame::line(std::string_view input, std::size_t end) {
  const std::string_view rest = input.substr(at_ + 1, end - at_ - 1);
  const char kind = input[at_];
  at_ = end + 2;
  searched_ = at_;
  switch (kind) {
    case '+':
    case '-':
    case ':':
    case ',':
    case '(':
    case '#':
    case '_':
      --missing_;
      return Status::whole;
    case '$':
    case '!':
    case '=': {
      if (rest == "-1") return --missing_, Status::whole;
      const auto size = parse_int(rest);
      if (!size || *size < 0 || *size > longest_text) return Status::failed;
      text_ = *size;
      return Status::whole;
    }
    case '*':
    case '~':
    case '>':
      --missing_;
      return count(rest, 1) ? Status::whole : Status::failed;
    case '%':
      --missing_;
      return count(rest, 2) ? Status::whole : Status::failed;
    case '|':
      return rest != "-1" && count(rest, 2) ? Status::whole : Status::failed;
    default:
      return Status::failed;
  }
}

ReplyFrame::Status ReplyFrame::scan(std::string_view input) {
  while (missing_ > 0) {
    if (text_ >= 0) {
      const std::size_t end = at_ + static_cast<std::size_t>(text_) + 2;
      if (end > longest_reply) return Status::failed;
      if (input.size() < end) return Status::incomplete;
      if (input.substr(end - 2, 2) != "\r\n") return Status::failed;
      at_ = searched_ = end;
      text_ = -1;
      --missing_;
      continue;
    }
    const std::size_t end = input.find('\n', std::max(searched_, at_));
    if ((end == input.npos ? input.size() : end) - at_ >= longest_line) return Status::failed;
    if (end == input.npos) {
      searched_ = std::max(input.size(), at_);
      return Status::incomplete;
    }
    if (end < at_ + 2 || input[end - 1] != '\r') return Status::failed;
    if (line(input, end - 1) == Status::failed || at_ > longest_reply) return Status::failed;
  }
  return Status::whole;
}

}  // namespace weir::kv
