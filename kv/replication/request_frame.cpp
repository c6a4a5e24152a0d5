#include "kv/replication/request_frame.hpp"

#include <limits>

#include "kv/text/number.hpp"

namespace weir::kv::repl {

namespace {
constexpr std::size_t longest_count = 32;
constexpr std::int64_t most_words = std::numeric_limits<std::int32_t>::max();
}  // namespace

// Reads "*3\r\n" or "$5\r\n" at at_.
RequestFrame::Status RequestFrame::count_line(std::string_view input, char kind, std::int64_t most,
                                              std::int64_t& count) {
  const std::string_view rest = input.substr(at_);
  const std::size_t end = rest.substr(0, longest_count).find("\r\n");
  if (!rest.empty() && rest.front() != kind) return Status::failed;
  if (end == rest.npos) return rest.size() < longest_count ? Status::incomplete : Status::failed;
  const auto number = parse_int(rest.substr(1, end - 1));
  if (!number || *number < 0 || *number > most) return Status::failed;
  count = *number;
  at_ += end + 2;
  return Status::whole;
}

RequestFrame::Status RequestFrame::scan(std::string_view input, const Limits& limits) {
  if (words_left_ < 0) {
    const bool newline = input.starts_with('\n') || input.starts_with("\r\n");
    if (newline) return at_ = input.find('\n') + 1, Status::whole;
    if (input == "\r") return Status::incomplete;
    if (const Status status = count_line(input, '*', most_words, words_left_); status != Status::whole)
      return status;
    if (words_left_ == 0) return Status::failed;
  }
  while (words_left_ > 0) {
    if (word_ < 0) {
      if (const Status status = count_line(input, '$', limits.word, word_); status != Status::whole)
        return at_ > limits.request ? Status::failed : status;
    }
    const std::size_t end = at_ + static_cast<std::size_t>(word_) + 2;
    if (end > limits.request) return Status::failed;
    if (input.size() < end) return Status::incomplete;
    if (input.substr(end - 2, 2) != "\r\n") return Status::failed;
    at_ = end;
    word_ = -1;
    --words_left_;
  }
  return Status::whole;
}

}  // namespace weir::kv::repl
