#include "kv/resp/request.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kv/resp/words.hpp"
#include "kv/text/number.hpp"
#include "kv/text/spare_room.hpp"

namespace weir::kv {

namespace {

// Lengths are short: "3", "16", "1048576". Anything unusual goes through the strict parser.
std::optional<std::int64_t> parse_length(std::string_view digits) {
  if (digits.size() == 1 && digits[0] >= '0' && digits[0] <= '9') return digits[0] - '0';
  return parse_int(digits);
}

// The line that starts at `from`, without CR LF; nullopt until its end has arrived.
// As in Redis the byte after the CR is not checked.
std::optional<std::string_view> take_line(std::string_view input, std::size_t from) {
  const char* begin = input.data() + from;
  const void* cr = std::memchr(begin, '\r', input.size() - from);
  if (cr == nullptr) return std::nullopt;
  const auto size = static_cast<std::size_t>(static_cast<const char*>(cr) - begin);
  if (from + size + 2 > input.size()) return std::nullopt;
  return std::string_view(begin, size);
}

// Reads the plain decimal at `at` with its CR LF, and moves `at` past them; -1: it is something
// else or has not arrived.
std::int64_t take_plain_length(const char*& at, const char* end) {
  constexpr std::ptrdiff_t most_digits = 9;
  const char* const first = at;
  std::int64_t value = 0;
  while (at != end && *at >= '0' && *at <= '9' && at - first < most_digits)
    value = value * 10 + (*at++ - '0');
  const std::ptrdiff_t digits = at - first;
  if (digits == 0 || (digits > 1 && *first == '0') || end - at < 2 || *at != '\r') return -1;
  at += 2;
  return value;
}

// For a complete line and for the start of one, so that the way in which a request was split does not
// decide whether it is refused.
bool too_long(const std::optional<std::string_view>& line, std::size_t arrived) {
  return line ? line->size() + 2 > RequestParser::max_inline : arrived > RequestParser::max_inline;
}

}  // namespace

RequestParser::Status RequestParser::parse(std::string_view input, const Limits& limits) {
  kept_ = input.size();
  if (!inline_words_.empty()) return Status::complete;  // asked again: its arguments are not in the input
  if (input.empty()) return Status::incomplete;
  return input[0] == '*' ? parse_array(input, limits) : parse_inline(input);
}

void RequestParser::next() {
  read_ = 0;
  bulks_left_ = -1;
  bulk_length_ = -1;
  empty_list(arguments_);
  empty_list(blocks_);
  empty_list(inline_words_);
  large_.reset();
  filled_ = 0;
  held_ = 0;
}

RequestParser::Status RequestParser::fail(std::string text) {
  error_ = std::move(text);
  return Status::failed;
}

RequestParser::Status RequestParser::parse_inline(std::string_view input) {
  // As in Redis a NUL hides the rest of an inline command, including its end.
  const std::size_t end = input.substr(0, input.find('\0')).find('\n', std::min(read_, input.find('\0')));
  const bool ended = end != std::string_view::npos;
  if (ended ? end > max_inline : input.size() > max_inline)
    return fail("Protocol error: too big inline request");
  if (!ended) {
    read_ = input.size();
    return Status::incomplete;
  }
  std::string_view line = input.substr(0, end);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  auto words = split_words(line);
  if (!words) return fail("Protocol error: unbalanced quotes in request");
  read_ = end + 1;
  inline_words_ = std::move(*words);
  arguments_.clear();
  for (const std::string& word : inline_words_) arguments_.push_back({word, nullptr});
  return Status::complete;
}

RequestParser::Status RequestParser::parse_array(std::string_view input, const Limits& limits) {
  if (bulks_left_ < 0) {
    if (parse_whole(input, limits)) return Status::complete;
    arguments_.clear();
  }
  Status status = Status::complete;
  if (bulks_left_ < 0 && !parse_count(input, limits, status)) return status;
  return parse_bulks(input, limits);
}

// The fast path: most requests are complete and plain. The code below handles all others.
bool RequestParser::parse_whole(std::string_view input, const Limits& limits) {
  constexpr std::int64_t most_arguments = 64;
  arguments_.clear();  // parse() may be called again
  const char* at = input.data() + 1;
  const char* const end = input.data() + input.size();
  const std::int64_t count = take_plain_length(at, end);
  if (count < 1 || count > (limits.authenticated ? most_arguments : 10)) return false;
  const std::int64_t longest = limits.authenticated ? limits.max_bulk : 16384;
  for (std::int64_t i = 0; i < count; ++i) {
    if (at == end || *at++ != '$') return false;
    const std::int64_t length = take_plain_length(at, end);
    if (length < 0 || length > longest || end - at < length + 2) return false;
    arguments_.push_back({{at, static_cast<std::size_t>(length)}, nullptr});
    at += length + 2;
  }
  read_ = static_cast<std::size_t>(at - input.data());
  return true;
}

// Reads "*<count>\r\n". False: return `status`.
bool RequestParser::parse_count(std::string_view input, const Limits& limits, Status& status) {
  const auto line = take_line(input, 1);
  if (!line || too_long(line, input.size())) {
    status = too_long(line, input.size()) ? fail("Protocol error: too big mbulk count string")
                                          : Status::incomplete;
    return false;
  }
  const auto count = parse_length(*line);
  if (!count || *count > max_arguments) {
    status = fail("Protocol error: invalid multibulk length");
    return false;
  }
  if (*count > 10 && !limits.authenticated) {
    status = fail("Protocol error: unauthenticated multibulk length");
    return false;
  }
  read_ = line->size() + 3;
  bulks_left_ = std::max<std::int64_t>(*count, 0);
  return true;
}

RequestParser::Status RequestParser::parse_bulks(std::string_view input, const Limits& limits) {
  follow(input);
  while (bulks_left_ > 0) {
    if (bulk_length_ < 0) {
      if (read_ == input.size()) return Status::incomplete;
      const auto line = take_line(input, read_ + 1);
      if (too_long(line, input.size() - read_)) return fail("Protocol error: too big bulk count string");
      if (!line) return Status::incomplete;
      if (input[read_] != '$') {
        return fail(std::string("Protocol error: expected '$', got '") + input[read_] + "'");
      }
      const auto length = parse_length(*line);
      if (!length || *length < 0 || *length > limits.max_bulk)
        return fail("Protocol error: invalid bulk length");
      if (*length > 16384 && !limits.authenticated)
        return fail("Protocol error: unauthenticated bulk length");
      bulk_length_ = *length;
      read_ += line->size() + 3;
    }
    const auto length = static_cast<std::size_t>(bulk_length_);
    if (large_) {
      if (filled_ < length + 2) return Status::incomplete;
      large_->size = length;
      held_ += length;
      arguments_.push_back({large_->view(), large_.get()});
      blocks_.push_back(std::move(large_));
      filled_ = 0;
    } else {
      if (input.size() - read_ < length + 2) {
        if (length < large_argument) return Status::incomplete;
        // The rest of the input starts this argument: move it to the argument's final place.
        large_ =
            BlobRef(Blob::make(0, std::min(length + 2, std::max(first_block, 2 * (input.size() - read_)))));
        filled_ = input.size() - read_;
        std::memcpy(large_->data(), input.data() + read_, filled_);
        kept_ = read_;
        return Status::incomplete;
      }
      arguments_.push_back({input.substr(read_, length), nullptr});
      read_ += length + 2;
    }
    bulk_length_ = -1;
    --bulks_left_;
  }
  return Status::complete;
}

// The input has moved: adjust the arguments that point into it.
void RequestParser::follow(std::string_view input) {
  const char* const was = std::exchange(input_, input.data());
  if (was == input_) return;
  for (Argument& argument : arguments_) {
    if (argument.block != nullptr) continue;
    const auto offset = static_cast<std::size_t>(argument.text.data() - was);
    argument.text = input.substr(offset, argument.text.size());
  }
}

void RequestParser::filled(std::size_t bytes) {
  filled_ += bytes;
  if (!large_ || filled_ < large_->capacity) return;
  const std::size_t whole = static_cast<std::size_t>(bulk_length_) + 2;
  if (large_->capacity >= whole) return;
  Blob* const grown = Blob::with_capacity(large_.get(), std::min(whole, 2 * large_->capacity));
  large_.release();
  large_.reset(grown);
}

std::span<char> RequestParser::wanted() {
  if (!large_) return {};
  return {large_->data() + filled_, large_->capacity - filled_};
}

}  // namespace weir::kv
