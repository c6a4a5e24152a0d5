#include "kv/resp/reply.hpp"

#include <charconv>

#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

constexpr std::size_t number_room = 32;

// A memcpy() for mostly short texts: two overlapping copies instead of a call.
void copy_text(char* out, const char* from, std::size_t size) {
  const auto both_ends = [=]<class Word>(Word first, Word last) {
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + size - sizeof last, sizeof last);
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + size - sizeof last, &last, sizeof last);
  };
  struct Half {
    std::uint64_t words[2];
  };
  if (size > 32) return static_cast<void>(std::memcpy(out, from, size));
  if (size >= 16) return both_ends(Half{}, Half{});
  if (size >= 8) return both_ends(std::uint64_t{}, std::uint64_t{});
  if (size >= 4) return both_ends(std::uint32_t{}, std::uint32_t{});
  for (std::size_t i = 0; i < size; ++i) out[i] = from[i];
}

// Writes "<kind><value>\r\n" at `out`, which has number_room bytes; returns the end.
char* put_number(char* out, char kind, std::int64_t value) {
  *out++ = kind;
  if (value >= 0 && value < 10) {
    *out++ = static_cast<char>('0' + value);
  } else {
    out = std::to_chars(out, out + 24, value).ptr;
  }
  *out++ = '\r';
  *out++ = '\n';
  return out;
}

}  // namespace

void Reply::number(char kind, std::int64_t value) {
  char* out = target_->reserve(number_room);
  target_->commit(static_cast<std::size_t>(put_number(out, kind, value) - out));
}

void Reply::simple(std::string_view text) {
  char* out = target_->reserve(text.size() + 3);
  *out = '+';
  std::memcpy(out + 1, text.data(), text.size());
  std::memcpy(out + 1 + text.size(), "\r\n", 2);
  target_->commit(text.size() + 3);
}

void Reply::error(std::string_view text) {
  ++errors;
  last_code.assign(text.substr(0, text.find(' ')));
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  char* out = target_->reserve(text.size() + 3);
  *out = '-';
  for (std::size_t i = 0; i < text.size(); ++i) {
    out[1 + i] = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
  }
  std::memcpy(out + 1 + text.size(), "\r\n", 2);
  target_->commit(text.size() + 3);
}

void Reply::bulk(std::string_view bytes) {
  if (bytes.size() <= 8192) {
    char* begin = target_->reserve(number_room + bytes.size() + 2);
    char* out = put_number(begin, '$', as_count(bytes.size()));
    copy_text(out, bytes.data(), bytes.size());
    out += bytes.size();
    *out++ = '\r';
    *out++ = '\n';
    target_->commit(static_cast<std::size_t>(out - begin));
    return;
  }
  number('$', as_count(bytes.size()));
  target_->append(bytes);
  target_->append("\r\n");
}

void Reply::bulk(const Bytes& bytes) {
  Blob* block = bytes.shared();
  if (block == nullptr || block->size < by_reference_size) return bulk(bytes.view());
  number('$', as_count(block->size));
  target_->append_shared(block);
  target_->append("\r\n");
}

void Reply::bulk_int(std::int64_t value) {
  IntText text;
  bulk(format_int(value, text));
}

void Reply::real(double value) {
  const std::string text = format_double(value);
  if (!resp3()) return bulk(text);
  raw(",");
  raw(text);
  raw("\r\n");
}

void Reply::boolean(bool value) {
  if (!resp3()) return integer(value ? 1 : 0);
  raw(value ? std::string_view("#t\r\n") : std::string_view("#f\r\n"));
}

void Reply::verbatim(std::string_view format, std::string_view text) {
  if (!resp3()) return bulk(text);
  number('=', as_count(text.size() + 4));
  raw(format);
  raw(":");
  raw(text);
  raw("\r\n");
}

void Reply::bulks(std::initializer_list<std::string_view> texts) {
  array(texts.size());
  for (std::string_view text : texts) bulk(text);
}

}  // namespace weir::kv
