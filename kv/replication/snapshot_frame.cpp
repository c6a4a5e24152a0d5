#include "kv/replication/snapshot_frame.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace weir::kv::repl {

namespace {

constexpr std::size_t longest_head = 128;

std::optional<std::uint64_t> read_size(std::string_view text) {
  std::uint64_t size = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, size);
  return error == std::errc{} && stop == end && size > 0 ? std::optional(size) : std::nullopt;
}

}  // namespace

SnapshotFrame::Taken SnapshotFrame::take_head(std::string_view input) {
  if (input.starts_with('\n')) return {1, {}};
  const std::size_t end = input.find('\n');
  if (end == input.npos) {
    if (input.size() > longest_head) state_ = State::failed;
    return {};
  }
  std::string_view line = input.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  constexpr std::string_view marked = "$EOF:";
  state_ = State::failed;
  if (line.starts_with(marked) && line.size() == marked.size() + mark_size) {
    mark_ = line.substr(marked.size());
    state_ = State::marked;
  } else if (line.starts_with('$')) {
    const auto size = read_size(line.substr(1));
    if (!size) return {};
    size_ = left_ = *size;
    state_ = State::counted;
  }
  return {end + 1, {}};
}

SnapshotFrame::Taken SnapshotFrame::take(std::string_view input) {
  switch (state_) {
    case State::head:
      return take_head(input);
    case State::counted: {
      const std::size_t some = std::min<std::uint64_t>(left_, input.size());
      left_ -= some;
      if (left_ == 0) state_ = State::ended;
      return {some, input.substr(0, some)};
    }
    case State::marked: {
      const std::size_t at = input.find(mark_);
      if (at != input.npos) {
        state_ = State::ended;
        return {at + mark_size, input.substr(0, at)};
      }
      // The mark may have begun within the last bytes.
      const std::size_t some = input.size() < mark_size ? 0 : input.size() - (mark_size - 1);
      return {some, input.substr(0, some)};
    }
    case State::ended:
    case State::failed:
      break;
  }
  return {};
}

}  // namespace weir::kv::repl
