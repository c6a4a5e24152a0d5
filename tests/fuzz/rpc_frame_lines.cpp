#include "tests/fuzz/rpc_frame_lines.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "rpc/codec/agreed_schemas.hpp"
#include "rpc/codec/method.hpp"
#include "rpc/codec/msgpack.hpp"
#include "rpc/metadata.hpp"
#include "rpc/trace_context.hpp"
#include "rpc/wire/compression.hpp"

namespace weir::fuzz {

using rpc::Bytes;
using rpc::FrameFlag;
using rpc::FrameHeader;
using rpc::FrameKind;

Words words_of(std::string_view line) {
  Words words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::uint64_t number_of(std::string_view word) {
  std::uint64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

std::string bytes_of_hex(std::string_view digits) {
  const auto digit = [](char c) {
    return c >= 'a' ? (c - 'a' + 10) & 15 : c >= 'A' ? (c - 'A' + 10) & 15 : c & 15;
  };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(digit(digits[i]) << 4 | digit(digits[i + 1])));
  return bytes;
}

namespace {

constexpr int deepest = 64;
constexpr std::size_t longest_text = 48 << 10;

struct KindWord {
  std::string_view word;
  FrameKind kind;
};
constexpr KindWord kind_words[] = {
    {"call", FrameKind::request},     {"stream", FrameKind::request}, {"reply", FrameKind::reply},
    {"fail", FrameKind::reply},       {"cancel", FrameKind::cancel},  {"goodbye", FrameKind::goodbye},
    {"item", FrameKind::item},        {"end", FrameKind::end},        {"credit", FrameKind::credit},
    {"ping", FrameKind::ping},        {"pong", FrameKind::pong},      {"credentials", FrameKind::credentials},
    {"settings", FrameKind::settings}};

// What the words with a colon say.
struct Changes {
  std::size_t attachment = 0, missing = 0, cut = SIZE_MAX, split = SIZE_MAX;
  std::optional<std::uint8_t> kind;
  rpc::Compression packed = rpc::Compression::none;
  bool traced = false, metadata = false, keep = false;
  std::optional<std::uint64_t> types;
  std::uint16_t flags = 0;
  std::uint32_t timeout_us = 0;
  std::uint8_t codec = 0;
  unsigned times = 1;
  std::vector<std::pair<std::size_t, std::uint8_t>> header;
};

void change(std::string_view word, Changes& to) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = word.substr(1, equals - 1);
  const std::string_view text = word.substr(std::min(equals + 1, word.size()));
  const std::uint64_t number = number_of(text);
  if (name == "a") to.attachment = std::min<std::uint64_t>(number, 128 << 10);
  if (name == "l") to.missing = number;
  if (name == "k") to.kind = static_cast<std::uint8_t>(number);
  if (name == "z") to.packed = static_cast<rpc::Compression>(number % 3);
  if (name == "T") to.traced = true;
  if (name == "M") to.metadata = true;
  if (name == "Y") to.types = number;
  if (name == "f") to.flags = static_cast<std::uint16_t>(number);
  if (name == "t") to.timeout_us = static_cast<std::uint32_t>(number);
  if (name == "c") to.codec = static_cast<std::uint8_t>(number);
  if (name == "x") to.times = static_cast<unsigned>(std::min<std::uint64_t>(number, 1000));
  if (name == "cut") to.cut = number;
  if (name == "split") to.split = number;
  if (name == "keep") to.keep = true;
  if (name == "h")
    to.header.emplace_back(
        number % rpc::frame_header_bytes,
        static_cast<std::uint8_t>(number_of(text.substr(std::min(text.find('.'), text.size() - 1) + 1))));
}

std::string text_of(std::string_view word) {
  if (word.starts_with('*'))
    return std::string(std::min<std::uint64_t>(number_of(word.substr(1)), longest_text), 'x');
  return std::string(word);
}

// Of which schema what a caller says of its types is: some that go together with what functions have, some
// that do not, none.
std::string_view caller_types(std::uint64_t number) {
  constexpr std::string_view all[] = {
      "(str) -> str",    "(i32, i32) -> i32", "",
      "(i64[s]) -> nil", "(A{b: [A]}) -> A",  "(u8, stream i16) -> stream u8"};
  return all[number % std::size(all)];
}

bool is_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word.substr(word[0] == '-' && word.size() > 1 ? 1 : 0),
                                              [](char c) { return c >= '0' && c <= '9'; });
}

void write_list(std::span<const std::string_view>& words, std::string_view close, Bytes& out, int depth) {
  Bytes values;
  std::size_t count = 0;
  for (; !words.empty() && words.front() != close; ++count) write_value(words, values, depth + 1);
  if (!words.empty()) words = words.subspan(1);
  rpc::MsgpackWriter writer(out);
  close == "]" ? writer.array(count) : writer.map(count / 2);
  out.append(values.span());
}

// The arguments of a request are an array, a result or an item is one value.
void write_body(std::span<const std::string_view> words, bool arguments, Bytes& out) {
  if (!words.empty() && words.front().starts_with('$'))
    return out.append(rpc::as_bytes(bytes_of_hex(words.front().substr(1))));
  if (arguments) return write_list(words, "]", out, 0);
  if (words.empty()) return rpc::MsgpackWriter(out).nil();
  write_value(words, out);
}

void write_text(std::span<const std::string_view> words, Bytes& out) {
  if (!words.empty() && words.front().starts_with('$'))
    return out.append(rpc::as_bytes(bytes_of_hex(words.front().substr(1))));
  for (const std::string_view word : words) out.append(rpc::as_bytes(text_of(word)));
}

}  // namespace

void write_value(std::span<const std::string_view>& words, Bytes& out, int depth) {
  rpc::MsgpackWriter writer(out);
  const std::string_view word = words.front();
  words = words.subspan(1);
  if (word == "[" && depth < deepest) return write_list(words, "]", out, depth);
  if (word == "{" && depth < deepest) return write_list(words, "}", out, depth);
  if (word == "nil") return writer.nil();
  if (word == "true" || word == "false") return writer.boolean(word == "true");
  if (!is_number(word)) return writer.text(text_of(word));
  std::int64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  writer.signed_integer(number);
}

std::optional<FrameLine> frame_of(std::span<const std::string_view> words, const IdOf& id_of,
                                  unsigned repetition) {
  if (words.size() < 2) return std::nullopt;
  const auto known = std::ranges::find(kind_words, words[0], &KindWord::word);
  if (known == std::end(kind_words)) return std::nullopt;
  Changes changes;
  std::vector<std::string_view> rest;
  for (const std::string_view word : words.subspan(2))
    word.starts_with(':') ? change(word, changes) : rest.push_back(word);
  std::span<const std::string_view> left = rest;
  const auto next = [&] {
    if (left.empty()) return std::string_view();
    const std::string_view word = left.front();
    left = left.subspan(1);
    return word;
  };

  FrameLine line;
  FrameHeader& header = line.header;
  header.kind = known->kind;
  header.id = id_of(words[1]) + repetition;
  Bytes body;
  if (changes.traced)
    std::ranges::fill(std::span(body.grow(rpc::trace_context_bytes), rpc::trace_context_bytes), std::byte{7});
  if (changes.types) rpc::append(body, rpc::CallerSchema{*changes.types, caller_types(*changes.types)});
  if (changes.metadata) static_cast<void>(rpc::append(body, {{"tenant", "7"}, {"", text_of("*100")}}));
  switch (header.kind) {
    case FrameKind::request:
      header.method = rpc::method_id(next());
      header.flags = words[0] == "stream" ? FrameFlag::streaming : 0;
      header.timeout_us = changes.timeout_us;
      write_body(left, true, body);
      break;
    case FrameKind::reply:
      if (words[0] == "fail") {
        header.status = static_cast<std::uint16_t>(number_of(next()));
        write_text(left, body);
        break;
      }
      [[fallthrough]];
    case FrameKind::item:
      write_body(left, false, body);
      break;
    case FrameKind::credentials:
      write_text(left, body);
      break;
    case FrameKind::credit:
      header.credit = static_cast<std::uint32_t>(number_of(next()));
      break;
    case FrameKind::settings:
      header.compressions = static_cast<std::uint32_t>(number_of(next()));
      break;
    default:
      break;
  }
  if (changes.traced) header.flags |= FrameFlag::traced;
  if (changes.types) header.flags |= FrameFlag::typed;
  if (changes.metadata) header.flags |= FrameFlag::metadata;
  if (changes.packed != rpc::Compression::none) {
    Bytes packed;
    if (rpc::compress(changes.packed, body.span(), packed)) body = std::move(packed);
    header.flags |= FrameFlag::compressed;
  }
  header.flags ^= changes.flags;
  header.codec = changes.codec;
  header.body_bytes = static_cast<std::uint32_t>(body.size() + changes.missing);
  header.attachment_bytes = static_cast<std::uint32_t>(changes.attachment);
  if (changes.kind) header.kind = static_cast<FrameKind>(*changes.kind);

  std::array<std::byte, rpc::frame_header_bytes> encoded;
  rpc::encode(header, encoded.data());
  for (const auto& [at, value] : changes.header) encoded.at(at) = std::byte{value};
  line.bytes.append(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  line.bytes.append(reinterpret_cast<const char*>(body.data()), body.size());
  line.attachment_at = line.bytes.size();
  line.bytes.append(changes.attachment, 'a');
  if (changes.cut < line.bytes.size()) line.bytes.resize(changes.cut);
  line.attachment_at = std::min(line.attachment_at, line.bytes.size());
  line.first_bytes = changes.split;
  line.times = changes.times;
  line.keep = changes.keep;
  return line;
}

}  // namespace weir::fuzz
