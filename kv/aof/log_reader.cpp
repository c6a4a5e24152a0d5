#include "kv/aof/log_reader.hpp"

#include <algorithm>
#include <cstring>

#include "kv/text/number.hpp"

namespace weir::kv::aof {

namespace {
constexpr std::size_t at_once = std::size_t{256} << 10;
constexpr std::size_t longest_number = 32;
constexpr std::size_t kept_buffer = std::size_t{4} << 20;
}  // namespace

// Reads more bytes after those in the buffer; false: end of file.
bool LogReader::refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
  filled_ -= begin_;
  read_ -= begin_;
  begin_ = 0;
  if (filled_ < at_once && buffer_.size() > kept_buffer) {
    buffer_.resize(2 * at_once);
    buffer_.shrink_to_fit();
  }
  if (buffer_.size() < filled_ + at_once) buffer_.resize(std::max(filled_ + at_once, buffer_.size() * 2));
  const std::size_t n = source_(buffer_.data() + filled_, buffer_.size() - filled_);
  filled_ += n;
  return n != 0;
}

LogReader::Step LogReader::skip_line() {
  for (;;) {
    const void* end = std::memchr(buffer_.data() + read_, '\n', filled_ - read_);
    if (end != nullptr) {
      read_ = static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data()) + 1;
      return Step::done;
    }
    if (!refill()) return Step::truncated;
  }
}

// Reads a line such as "*3\r\n" or "$5\r\n".
LogReader::Step LogReader::take_number(char kind, std::int64_t most, std::int64_t& value) {
  for (;;) {
    const std::string_view rest(buffer_.data() + read_, filled_ - read_);
    if (!rest.empty() && rest[0] != kind) return Step::malformed;
    const std::size_t end = rest.substr(0, longest_number).find("\r\n");
    if (end != std::string_view::npos) {
      const auto number = parse_int(rest.substr(1, end - 1));
      if (!number || *number < 0 || *number > most) return Step::malformed;
      value = *number;
      read_ += end + 2;
      return Step::done;
    }
    if (rest.size() >= longest_number) return Step::malformed;
    const std::string_view digits = rest.substr(rest.empty() ? 0 : 1);
    if (digits.find_first_not_of("0123456789\r") != std::string_view::npos) return Step::malformed;
    if (!refill()) return Step::truncated;
  }
}

LogReader::Step LogReader::take_word() {
  std::int64_t length = 0;
  if (const Step step = take_number('$', longest_word, length); step != Step::done) return step;
  const auto size = static_cast<std::size_t>(length);
  while (filled_ - read_ < size + 2) {
    if (!refill()) return Step::truncated;
  }
  if (std::memcmp(buffer_.data() + read_ + size, "\r\n", 2) != 0) return Step::malformed;
  pieces_.push_back({read_ - begin_, size});
  read_ += size + 2;
  return Step::done;
}

LogReader::Step LogReader::take_request() {
  std::int64_t words = 0;
  if (const Step step = take_number('*', most_words, words); step != Step::done) return step;
  if (words == 0) return Step::malformed;
  for (std::int64_t i = 0; i < words; ++i) {
    if (const Step step = take_word(); step != Step::done) return step;
  }
  return Step::done;
}

LogReader::Next LogReader::next() {
  const auto next_of = [](Step step) { return step == Step::truncated ? Next::truncated : Next::malformed; };
  for (;;) {
    whole_ += read_ - begin_;
    begin_ = read_;
    pieces_.clear();
    arguments_.clear();
    if (filled_ == read_ && !refill()) return Next::end;
    if (buffer_[read_] != '#') break;
    if (const Step step = skip_line(); step != Step::done) return next_of(step);
    const std::string_view line(buffer_.data() + begin_, read_ - begin_);
    note_ = line.size() <= longest_note ? line.substr(0, line.find_first_of("\r\n")) : "";
  }
  note_.clear();
  if (const Step step = take_request(); step != Step::done) return next_of(step);
  for (const Piece& piece : pieces_)
    arguments_.push_back({{buffer_.data() + begin_ + piece.offset, piece.size}, nullptr});
  return Next::request;
}

}  // namespace weir::kv::aof
