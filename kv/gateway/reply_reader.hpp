// Reads a whole reply of a node from the front, for the few replies that the gateway itself interprets. A
// value of another type than asked for gives nullopt. Texts point into the reply.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kv/resp/reply_frame.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::cluster {

class ReplyReader {
 public:
  explicit ReplyReader(std::string_view reply) : rest_(reply) {}

  std::optional<std::int64_t> array() { return headed('*'); }
  // The number of pairs.
  std::optional<std::int64_t> map() { return headed('%'); }
  std::optional<std::int64_t> push() { return headed('>'); }
  std::optional<std::int64_t> integer() { return headed(':'); }
  // Null replies give an empty text.
  std::optional<std::string_view> text() {
    const auto size = headed('$');
    if (!size) return std::nullopt;
    if (*size < 0) return std::string_view();
    const auto length = static_cast<std::size_t>(*size);
    if (rest_.size() < length + 2) return std::nullopt;
    const std::string_view found = rest_.substr(0, length);
    rest_.remove_prefix(length + 2);
    return found;
  }
  bool skip() {
    ReplyFrame frame;
    if (frame.scan(rest_) != ReplyFrame::Status::whole) return false;
    rest_.remove_prefix(frame.size());
    return true;
  }
  // What has not been read yet.
  std::string_view rest() const { return rest_; }

 private:
  std::optional<std::int64_t> headed(char kind) {
    const std::size_t end = rest_.find("\r\n");
    if (end == rest_.npos || rest_.front() != kind) return std::nullopt;
    const auto number = parse_int(rest_.substr(1, end - 1));
    if (number) rest_.remove_prefix(end + 2);
    return number;
  }

  std::string_view rest_;
};

}  // namespace weir::kv::cluster
