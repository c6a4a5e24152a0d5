#include "kv/rdb/ziplist.hpp"

namespace weir::kv::rdb {

namespace {

constexpr std::size_t ziplist_header = 10;
constexpr std::uint8_t ziplist_end = 0xff;
constexpr std::uint8_t four_bytes_follow = 0xfe;
constexpr std::size_t too_many_to_say = 65535;

}  // namespace

Ziplist::Ziplist(std::string_view bytes) : CompactReader(bytes) {
  if (bytes.size() <= ziplist_header || number_at<std::uint32_t>(0) != bytes.size()) {
    broken_ = true;
    return;
  }
  announced_ = number_at<std::uint16_t>(8);
  at_ = last_ = ziplist_header;
}

bool Ziplist::end() {
  const bool counts = announced_ == too_many_to_say || announced_ == seen_;
  if (at_ + 1 != bytes_.size() || !counts || number_at<std::uint32_t>(4) != last_) broken_ = true;
  return false;
}

bool Ziplist::size_before() {
  std::uint64_t size = byte_at(at_);
  if (size == four_bytes_follow) {
    if (!has(5)) return false;
    size = number_at<std::uint32_t>(at_ + 1);
    at_ += 5;
  } else {
    at_ += 1;
  }
  return size == before_ ? true : fail();
}

bool Ziplist::integer(std::uint8_t encoding, std::string_view& element) {
  std::int64_t value = 0;
  std::size_t size = 0;
  if (encoding == 0xc0) {
    if (!has(size = 2)) return false;
    value = number_at<std::int16_t>(at_);
  } else if (encoding == 0xd0) {
    if (!has(size = 4)) return false;
    value = number_at<std::int32_t>(at_);
  } else if (encoding == 0xe0) {
    if (!has(size = 8)) return false;
    value = number_at<std::int64_t>(at_);
  } else if (encoding == 0xf0) {
    if (!has(size = 3)) return false;
    value = int24_at(at_);
  } else if (encoding == 0xfe) {
    if (!has(size = 1)) return false;
    value = number_at<std::int8_t>(at_);
  } else if (encoding >= 0xf1 && encoding <= 0xfd) {
    value = (encoding & 0x0f) - 1;
  } else {
    return fail();
  }
  element = as_text(value);
  at_ += size;
  return true;
}

bool Ziplist::next(std::string_view& element) {
  if (broken_ || !has(1)) return false;
  if (byte_at(at_) == ziplist_end) return end();
  const std::size_t begin = at_;
  if (!size_before() || !has(1)) return false;
  const std::uint8_t encoding = byte_at(at_);
  if (encoding >= 0xc0) {
    ++at_;
    if (!integer(encoding, element)) return false;
  } else {
    std::uint64_t size = encoding & 0x3f;
    std::size_t head = 1;
    if (encoding >> 6 == 1) {
      if (!has(head = 2)) return false;
      size = size << 8 | byte_at(at_ + 1);
    } else if (encoding >> 6 == 2) {
      if (!has(head = 5)) return false;
      size = __builtin_bswap32(number_at<std::uint32_t>(at_ + 1));
    }
    at_ += head;
    if (!has(size)) return false;
    element = bytes_.substr(at_, size);
    at_ += size;
  }
  last_ = begin;
  before_ = at_ - begin;
  ++seen_;
  return true;
}

Zipmap::Zipmap(std::string_view bytes) : CompactReader(bytes) {
  if (bytes.size() < 2) broken_ = true;
  at_ = 1;  // after the number of pairs, which may mean "count them"
}

bool Zipmap::next(std::string_view& element) {
  constexpr std::uint8_t zipmap_end = 0xff;
  if (broken_ || !has(1)) return false;
  std::uint64_t size = byte_at(at_);
  if (size == zipmap_end) {
    if (value_next_ || at_ + 1 != bytes_.size()) broken_ = true;
    return false;
  }
  std::size_t head = 1;
  if (size == four_bytes_follow) {
    if (!has(head = 5)) return false;
    size = number_at<std::uint32_t>(at_ + 1);
  }
  at_ += head;
  std::uint64_t unused = 0;  // spare bytes after a value
  if (value_next_) {
    if (!has(1)) return false;
    unused = byte_at(at_++);
  }
  if (!has(size + unused)) return false;
  element = bytes_.substr(at_, size);
  at_ += size + unused;
  value_next_ = !value_next_;
  return true;
}

}  // namespace weir::kv::rdb
