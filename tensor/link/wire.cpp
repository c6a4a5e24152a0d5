#include "tensor/link/wire.hpp"

#include <algorithm>

#include "tensor/arrays/little_endian.hpp"
#include "tensor/arrays/metadata.hpp"

namespace weir::tensor::wire {
namespace {

enum class Kind : std::uint8_t {
  request = 1,
  metadata_update = 2,
  re_request = 3,
  error_status = 4,
  cancel = 5,
  location = 6,
  done = 7,
  push = 8,
  auth = 9,
  parts = 10,
  lease_done = 11,
};
constexpr std::uint8_t flag_wait = 1, flag_locate = 2, flag_metadata = 4, flag_follow = 8, flag_add = 16;
constexpr std::uint32_t greeting_magic = 0x4e545257;  // "WRTN"

Writer begin(Kind kind, std::uint8_t flags, std::uint32_t index) {
  Writer out;
  out.number(static_cast<std::uint8_t>(kind)).number(flags).number(std::uint16_t{0}).number(index);
  return out;
}
void put(Writer& out, const Memory& memory) {
  out.number(memory.address).number(memory.bytes).number(memory.rkey);
}
Memory take_memory(Reader& in) {
  Memory memory;
  memory.address = in.number<std::uint64_t>();
  memory.bytes = in.number<std::uint64_t>();
  memory.rkey = in.number<std::uint32_t>();
  return memory;
}
// Appends a 16-bit length and the text.
void put(Writer& out, std::string_view text) {
  out.number(static_cast<std::uint16_t>(text.size())).text(text);
}
std::string take_text(Reader& in) { return std::string(in.text(in.number<std::uint16_t>())); }
std::vector<std::byte> take_bytes(Reader& in) {
  const std::span<const std::byte> bytes = in.take(in.number<std::uint16_t>());
  return {bytes.begin(), bytes.end()};
}
std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Writer body(const Request& m) {
  const auto flags = static_cast<std::uint8_t>((m.wait ? flag_wait : 0) | (m.locate ? flag_locate : 0) |
                                               (m.follow ? flag_follow : 0));
  Writer out = begin(Kind::request, flags, m.index);
  out.number(m.name_id).number(m.metadata_id).number(m.newer_than).number(m.generation);
  put(out, m.to);
  put(out, m.name);
  return out;
}
Writer body(const MetadataUpdate& m) {
  Writer out = begin(Kind::metadata_update, 0, m.index);
  out.number(m.name_id).number(m.version).number(m.metadata_id).number(m.data_bytes).number(m.metadata_bytes);
  put(out, text_of(m.metadata));
  return out;
}
Writer body(const ReRequest& m) {
  const auto flags =
      static_cast<std::uint8_t>((m.locate ? flag_locate : 0) | (m.of_metadata ? flag_metadata : 0));
  Writer out = begin(Kind::re_request, flags, m.index);
  put(out, m.to);
  return out;
}
Writer body(const ErrorStatus& m) {
  Writer out = begin(Kind::error_status, 0, m.index);
  out.number(static_cast<std::uint16_t>(m.code)).number(m.version);
  put(out, std::string_view(m.text).substr(0, 1024));
  return out;
}
Writer body(const Cancel& m) { return begin(Kind::cancel, 0, m.index); }
Writer body(const Location& m) {
  Writer out = begin(Kind::location, 0, m.index);
  out.number(m.version).number(static_cast<std::uint16_t>(m.sources.size()));
  for (const Memory& each : m.sources) put(out, each);
  return out;
}
Writer body(const Done& m) { return begin(Kind::done, 0, m.index); }
Writer body(const Push& m) {
  Writer out = begin(Kind::push, m.add ? flag_add : 0, m.index);
  out.number(m.data_bytes).number(m.metadata_bytes);
  put(out, m.name);
  put(out, text_of(m.metadata));
  return out;
}

Writer body(const Auth& m) {
  Writer out = begin(Kind::auth, 0, m.index);
  out.number(static_cast<std::uint32_t>(m.step)).append(m.bytes);
  return out;
}

Writer body(const Parts& m) {
  Writer out = begin(Kind::parts, 0, m.index);
  out.number(static_cast<std::uint16_t>(m.extents.size()));
  for (const Extent& each : m.extents) out.number(each.offset).number(each.bytes);
  return out;
}

Writer body(const LeaseDone& m) {
  Writer out = begin(Kind::lease_done, 0, m.index);
  out.number(m.version).number(m.generation);
  put(out, m.name);
  put(out, m.word);
  return out;
}

// The header of a message; the parsers below read the rest.
struct Header {
  std::uint8_t flags = 0;
  std::uint32_t index = 0;
};

Message read_request(Reader& in, const Header& header) {
  Request m;
  m.index = header.index;
  m.wait = (header.flags & flag_wait) != 0;
  m.locate = (header.flags & flag_locate) != 0;
  m.follow = (header.flags & flag_follow) != 0;
  m.name_id = in.number<std::uint32_t>();
  m.metadata_id = in.number<std::uint64_t>();
  m.newer_than = in.number<std::uint64_t>();
  m.generation = in.number<std::uint64_t>();
  m.to = take_memory(in);
  m.name = take_text(in);
  return m;
}
Message read_metadata_update(Reader& in, const Header& header) {
  MetadataUpdate m;
  m.index = header.index;
  m.name_id = in.number<std::uint32_t>();
  m.version = in.number<std::uint64_t>();
  m.metadata_id = in.number<std::uint64_t>();
  m.data_bytes = in.number<std::uint64_t>();
  m.metadata_bytes = in.number<std::uint64_t>();
  m.metadata = take_bytes(in);
  return m;
}
Message read_re_request(Reader& in, const Header& header) {
  ReRequest m;
  m.index = header.index;
  m.locate = (header.flags & flag_locate) != 0;
  m.of_metadata = (header.flags & flag_metadata) != 0;
  m.to = take_memory(in);
  return m;
}
Message read_error_status(Reader& in, const Header& header) {
  ErrorStatus m;
  m.index = header.index;
  m.code = static_cast<Errc>(in.number<std::uint16_t>());
  m.version = in.number<std::uint64_t>();
  m.text = take_text(in);
  return m;
}
Message read_cancel(Reader&, const Header& header) { return Cancel{header.index}; }
Message read_location(Reader& in, const Header& header) {
  Location m;
  m.index = header.index;
  m.version = in.number<std::uint64_t>();
  m.sources.resize(std::min<std::size_t>(in.number<std::uint16_t>(), most_sources + 1));
  for (Memory& each : m.sources) each = take_memory(in);
  return m;
}
Message read_done(Reader&, const Header& header) { return Done{header.index}; }
Message read_push(Reader& in, const Header& header) {
  Push m;
  m.index = header.index;
  m.add = (header.flags & flag_add) != 0;
  m.data_bytes = in.number<std::uint64_t>();
  m.metadata_bytes = in.number<std::uint64_t>();
  m.name = take_text(in);
  m.metadata = take_bytes(in);
  return m;
}

Message read_auth(Reader& in, const Header& header) {
  Auth m;
  m.index = header.index;
  m.step = static_cast<Auth::Step>(in.number<std::uint32_t>());
  std::ranges::copy(in.take(m.bytes.size()), m.bytes.begin());
  return m;
}

Message read_parts(Reader& in, const Header& header) {
  Parts m;
  m.index = header.index;
  m.extents.resize(std::min<std::size_t>(in.number<std::uint16_t>(), most_listed_extents + 1));
  for (Extent& each : m.extents) {
    each.offset = in.number<std::uint64_t>();
    each.bytes = in.number<std::uint64_t>();
  }
  return m;
}

Message read_lease_done(Reader& in, const Header& header) {
  LeaseDone m;
  m.index = header.index;
  m.version = in.number<std::uint64_t>();
  m.generation = in.number<std::uint64_t>();
  m.name = take_text(in);
  m.word = take_text(in);
  return m;
}

struct Row {
  std::uint8_t flags;  // flags that this kind may have
  Message (*read)(Reader&, const Header&);
};
constexpr Row rows[] = {
    {0, nullptr},
    {flag_wait | flag_locate | flag_follow, read_request},
    {0, read_metadata_update},
    {flag_locate | flag_metadata, read_re_request},
    {0, read_error_status},
    {0, read_cancel},
    {0, read_location},
    {0, read_done},
    {flag_add, read_push},
    {0, read_auth},
    {0, read_parts},
    {0, read_lease_done},
};

bool sound(const Request& m) {
  return m.name.size() <= most_name_bytes && (m.name_id == 0) != m.name.empty();
}
bool sound(const MetadataUpdate& m) {
  const std::size_t expected = m.metadata_bytes <= most_inline_metadata ? m.metadata_bytes : 0;
  return m.metadata.size() == expected;
}
bool sound(const ErrorStatus& m) { return m.text.size() <= 1024; }
bool sound(const Location& m) { return m.sources.size() <= most_sources; }
bool sound(const Push& m) {
  const std::size_t expected = m.metadata_bytes <= most_pushed_metadata ? m.metadata_bytes : 0;
  return !m.name.empty() && m.name.size() <= most_name_bytes && m.metadata.size() == expected;
}
bool sound(const Auth& m) {
  return m.index == 0 && m.step >= Auth::Step::hello && m.step <= Auth::Step::welcome;
}
bool sound(const Parts& m) {
  return !m.extents.empty() && m.extents.size() <= most_listed_extents &&
         std::ranges::all_of(m.extents, [](const Extent& each) {
           return each.bytes > 0 && each.bytes <= most_data_bytes && each.offset <= most_data_bytes;
         });
}
bool sound(const LeaseDone& m) {
  return !m.name.empty() && m.name.size() <= most_name_bytes && m.word.size() <= most_word_bytes;
}
bool sound(const auto&) { return true; }

}  // namespace

std::uint32_t index_of(const Message& message) {
  return std::visit([](const auto& each) { return each.index; }, message);
}

std::vector<std::byte> encode(const Message& message) {
  return std::visit([](const auto& each) { return body(each).take(); }, message);
}

Result<Message> take_message(std::span<const std::byte>& frame) {
  if (frame.size() > message_bytes) return fail(Errc::protocol, "a message of more than 4096 bytes");
  Reader in(frame);
  const auto kind = in.number<std::uint8_t>();
  Header header;
  header.flags = in.number<std::uint8_t>();
  const auto zero = in.number<std::uint16_t>();
  header.index = in.number<std::uint32_t>();
  if (kind == 0 || kind >= std::size(rows)) return fail(Errc::protocol, "a message of an unknown kind");
  if ((header.flags & ~rows[kind].flags) != 0 || zero != 0)
    return fail(Errc::protocol, "a message with unknown flags");
  Message message = rows[kind].read(in, header);
  if (!in.ok()) return fail(Errc::protocol, "a message that ends too early");
  if (!std::visit([](const auto& each) { return sound(each); }, message))
    return fail(Errc::protocol, "a message whose lengths contradict each other");
  frame = frame.last(in.left());
  return message;
}

std::vector<std::byte> encode(const Record& record) {
  Writer out;
  out.number(record.generation)
      .number(record.version)
      .number(record.bytes)
      .number(record.index)
      .number(record.kind);
  return out.take();
}

Record parse_record(std::span<const std::byte, record_bytes> bytes) {
  Reader in(bytes);
  Record record;
  record.generation = in.number<std::uint64_t>();
  record.version = in.number<std::uint64_t>();
  record.bytes = in.number<std::uint64_t>();
  record.index = in.number<std::uint32_t>();
  record.kind = in.number<std::uint32_t>();
  return record;
}

std::vector<std::byte> encode(const Greeting& greeting) {
  Writer out;
  out.number(greeting_magic).number(version).number(greeting.window).number(greeting.generation);
  put(out, greeting.records);
  return out.take();
}

Result<Greeting> parse_greeting(std::span<const std::byte> bytes) {
  Reader in(bytes);
  const auto magic = in.number<std::uint32_t>();
  const auto spoken = in.number<std::uint16_t>();
  Greeting greeting;
  greeting.window = in.number<std::uint16_t>();
  greeting.generation = in.number<std::uint64_t>();
  greeting.records = take_memory(in);
  if (!in.ok() || magic != greeting_magic)
    return fail(Errc::protocol, "the other end does not speak the tensor protocol");
  if (spoken != version)
    return fail(Errc::protocol, "the other end speaks version " + std::to_string(spoken) +
                                    " of the tensor protocol, this library " + std::to_string(version));
  if (greeting.window < 2 || greeting.window > 1024 ||
      greeting.records.bytes != slots * std::uint64_t{record_bytes})
    return fail(Errc::protocol, "a greeting whose numbers are out of range");
  return greeting;
}

}  // namespace weir::tensor::wire
