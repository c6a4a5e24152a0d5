// The frame, byte for byte, and the frame reader, however the bytes are split.
#include "rpc/wire/frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace weir::rpc {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(b) >> 4];
    text += digits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

using RawHeader = std::array<std::byte, frame_header_bytes>;
RawHeader encoded(const FrameHeader& header) {
  RawHeader bytes;
  encode(header, bytes.data());
  return bytes;
}

struct GoldenRow {
  const char* name;
  FrameHeader header;
  const char* bytes;
};
const GoldenRow golden[] = {
    {"request",
     {FrameKind::request, FrameFlag::idempotent, 0, 0x0102030405060708, 0x1112131415161718, 1'000'000, 5,
      300},
     "57720101"
     "01000000"
     "0807060504030201"
     "1817161514131211"
     "40420f00"
     "05000000"
     "2c010000"
     "00000000"},
    {"reply",
     {FrameKind::reply, 0, 5, 7, 0, 0, 0x01020304, 0},
     "57720102"
     "00000500"
     "0700000000000000"
     "0000000000000000"
     "00000000"
     "04030201"
     "00000000"
     "00000000"},
    {"cancel",
     {FrameKind::cancel, 0, 0, 7, 0, 0, 0, 0},
     "57720103"
     "00000000"
     "0700000000000000"
     "0000000000000000"
     "00000000"
     "00000000"
     "00000000"
     "00000000"},
    {"goodbye",
     {FrameKind::goodbye, 0, 0, 0, 0, 0, 0, 0},
     "57720104"
     "00000000"
     "0000000000000000"
     "0000000000000000"
     "00000000"
     "00000000"
     "00000000"
     "00000000"},
    {"item",
     {FrameKind::item, 0, 0, 7, 0, 0, 3, 0},
     "57720105"
     "00000000"
     "0700000000000000"
     "0000000000000000"
     "00000000"
     "03000000"
     "00000000"
     "00000000"},
    {"compressed item",
     {FrameKind::item, FrameFlag::compressed, 0, 7, 0, 0, 3, 0},
     "57720105"
     "08000000"
     "0700000000000000"
     "0000000000000000"
     "00000000"
     "03000000"
     "00000000"
     "00000000"},
    {"settings",
     {FrameKind::settings, 0, 0, 0, 0, 0, 0, 0, 0, 6},
     "5772010b"
     "00000000"
     "0000000000000000"
     "0000000000000000"
     "06000000"
     "00000000"
     "00000000"
     "00000000"},
    {"hello",
     {FrameKind::settings, 0, 0, 0x0000'0001'0000'0001, 0, 0, 0, 0, 0, 6},
     "5772010b"
     "00000000"
     "0100000001000000"
     "0000000000000000"
     "06000000"
     "00000000"
     "00000000"
     "00000000"},
    {"typed request",
     {FrameKind::request, FrameFlag::typed, 0, 7, 9, 0, 11, 0},
     "57720101"
     "10000000"
     "0700000000000000"
     "0900000000000000"
     "00000000"
     "0b000000"
     "00000000"
     "00000000"},
    {"credit",
     {FrameKind::credit, 0, 0, 7, 0, 0, 0, 0, 65536},
     "57720107"
     "00000000"
     "0700000000000000"
     "0000000000000000"
     "00000100"
     "00000000"
     "00000000"
     "00000000"},
};

TEST(Frame, header_is_as_documented) {
  for (const GoldenRow& row : golden) {
    const RawHeader bytes = encoded(row.header);
    EXPECT_EQ(hex(bytes), row.bytes) << row.name;
    const auto parsed = parse_header(bytes);
    ASSERT_TRUE(parsed) << row.name << ": " << parsed.error().what;
    EXPECT_EQ(*parsed, row.header) << row.name;
  }
}

struct BadRow {
  const char* what;
  std::size_t offset;
  std::uint8_t value;
  Errc code;
};

TEST(Frame, only_requests_replies_and_items_are_compressed) {
  for (int kind = 1; kind <= static_cast<int>(FrameKind::settings); ++kind) {
    FrameHeader header;
    header.kind = static_cast<FrameKind>(kind);
    header.flags = FrameFlag::compressed;
    header.id = 7;
    const bool may = header.kind == FrameKind::request || header.kind == FrameKind::reply ||
                     header.kind == FrameKind::item;
    EXPECT_EQ(parse_header(encoded(header)).has_value(), may) << kind;
    header.flags = FrameFlag::streaming;
    EXPECT_EQ(parse_header(encoded(header)).has_value(), header.kind == FrameKind::request) << kind;
  }
}

TEST(Frame, what_is_no_header_is_refused) {
  const BadRow rows[] = {{"magic", 0, 'X', Errc::protocol},
                         {"magic", 1, 0, Errc::protocol},
                         {"version", 2, 2, Errc::version_mismatch},
                         {"kind 0", 3, 0, Errc::protocol},
                         {"credentials with a method", 3, 10, Errc::protocol},
                         {"settings with a body", 3, 11, Errc::protocol},
                         {"kind 12", 3, 12, Errc::protocol},
                         {"item with a method", 3, 5, Errc::protocol},
                         {"end with a body", 3, 6, Errc::protocol},
                         {"ping with a body", 3, 8, Errc::protocol},
                         {"unknown flag", 5, 2, Errc::protocol},
                         {"unknown flag", 5, 1, Errc::protocol},
                         {"status in a request", 6, 1, Errc::protocol},
                         {"last field", 37, 1, Errc::protocol},
                         {"cancel with a method", 3, 3, Errc::protocol},
                         {"reply with a timeout", 3, 2, Errc::protocol}};
  for (const BadRow& row : rows) {
    RawHeader bytes = encoded({FrameKind::request, 0, 0, 7, 8, 9, 10, 11});
    bytes[row.offset] = std::byte{row.value};
    const auto parsed = parse_header(bytes);
    ASSERT_FALSE(parsed) << row.what;
    EXPECT_EQ(parsed.error().code, row.code) << row.what << ": " << parsed.error().what;
  }
}

struct Collected final : FrameSink {
  std::vector<FrameHeader> headers;
  std::string bodies, attachments;
  bool on_frame(Frame& frame) override {
    headers.push_back(frame.header);
    bodies += hex(frame.body) + ",";
    attachments += hex(frame.attachment.span()) + ",";
    return true;
  }
};

// Frames of all shapes, one after the other.
std::vector<std::byte> some_frames(std::mt19937& random, int count) {
  std::vector<std::byte> stream;
  for (int i = 0; i < count; ++i) {
    FrameHeader header;
    header.id = static_cast<std::uint64_t>(i) + 1;
    const std::uint32_t sizes[] = {0, 0, 1, 17, 39, 40, 41, 5000, 9000};
    header.body_bytes = sizes[random() % 9];
    header.attachment_bytes = random() % 3 == 0 ? sizes[random() % 9] : 0;
    const RawHeader raw = encoded(header);
    stream.insert(stream.end(), raw.begin(), raw.end());
    for (std::uint32_t n = header.body_bytes + header.attachment_bytes; n > 0; --n)
      stream.push_back(static_cast<std::byte>(random()));
  }
  return stream;
}

TEST(FrameReader, finds_the_same_frames_however_the_bytes_are_cut) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    const auto stream = some_frames(random, 20);
    Collected whole, cut;
    FrameReader one(FrameLimits{}), two(FrameLimits{});
    ASSERT_TRUE(one.feed(stream, whole));
    ASSERT_EQ(whole.headers.size(), 20u) << "seed " << seed;
    std::span<const std::byte> rest = stream;
    while (!rest.empty()) {
      const std::span<std::byte> wanted = two.wanted(cut);
      const std::size_t most = wanted.empty() ? 3000 : wanted.size();
      const std::size_t piece = std::min<std::size_t>({1 + random() % most, rest.size()});
      if (wanted.empty()) {
        ASSERT_TRUE(two.feed(rest.first(piece), cut));
      } else {
        std::copy_n(rest.begin(), piece, wanted.begin());
        ASSERT_TRUE(two.filled(piece, cut));
      }
      rest = rest.subspan(piece);
    }
    EXPECT_EQ(cut.headers, whole.headers) << "seed " << seed;
    EXPECT_EQ(cut.bodies, whole.bodies) << "seed " << seed;
    EXPECT_EQ(cut.attachments, whole.attachments) << "seed " << seed;
  }
}

// Most peers that speak another protocol send less than a frame's header, and then wait.
TEST(FrameReader, knows_a_stranger_by_the_first_bytes_it_says) {
  const std::pair<std::string, std::string_view> rows[] = {
      {"SSH-2.0-Some_1.0\r\n", "SSH"},
      {"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP server"},
      {"GET / HTTP/1.1\r\n\r\n", "HTTP client"},
      {"-ERR unknown command\r\n", "Valkey or Redis"},
      {std::string("\x15\x03\x03\0\2\2\x46", 7), "TLS"},
      {"220 ready\r\n", "mail"},
      {"x", "wrong first bytes"},
      {"Wx", "wrong first bytes"}};
  for (const auto& [said, who] : rows) {
    FrameReader reader(FrameLimits{});
    Collected sink;
    const auto read = reader.feed(as_bytes(said), sink);
    ASSERT_FALSE(read) << said;
    EXPECT_EQ(read.error().code, Errc::protocol);
    EXPECT_NE(read.error().what.find(who), std::string::npos) << read.error().what;
  }
  FrameReader by_bytes(FrameLimits{});
  Collected sink;
  EXPECT_TRUE(by_bytes.feed(as_bytes(std::string_view("W")), sink));
  EXPECT_FALSE(by_bytes.feed(as_bytes(std::string_view("e")), sink));
}

TEST(FrameReader, refuses_what_is_beyond_the_limits) {
  for (const auto& [body, attachment] : {std::pair{101u, 0u}, std::pair{0u, 201u}}) {
    FrameReader reader(FrameLimits{.body_bytes = 100, .attachment_bytes = 200});
    Collected sink;
    FrameHeader header;
    header.id = 7;
    header.body_bytes = body;
    header.attachment_bytes = attachment;
    EXPECT_EQ(reader.oversize(), 0u);
    const auto fed = reader.feed(encoded(header), sink);
    ASSERT_FALSE(fed);
    EXPECT_EQ(fed.error().code, Errc::too_large);
    EXPECT_EQ(reader.oversize(), 7u);
  }
}

TEST(FrameReader, goes_on_when_an_attachments_memory_goes_away) {
  FrameReader reader(FrameLimits{});
  struct Lending final : FrameSink {
    std::vector<std::byte> memory = std::vector<std::byte>(8000);
    std::vector<std::size_t> sizes;
    Buffer attachment_for(const FrameHeader&) override { return {memory, nullptr, nullptr}; }
    bool on_frame(Frame& frame) override {
      sizes.push_back(frame.attachment.size());
      return true;
    }
  } sink;
  FrameHeader header;
  header.attachment_bytes = 8000;
  ASSERT_TRUE(reader.feed(encoded(header), sink));
  ASSERT_EQ(reader.wanted(sink).data(), sink.memory.data());
  reader.divert_attachment();
  ASSERT_NE(reader.wanted(sink).data(), sink.memory.data());
  const std::vector<std::byte> rest(8000);
  ASSERT_TRUE(reader.feed(rest, sink));
  EXPECT_EQ(sink.sizes, std::vector<std::size_t>{8000});
}

TEST(FrameReader, keeps_memory_that_is_just_the_attachment) {
  struct Keeping final : FrameSink {
    bool elsewhere = false;
    std::vector<const std::byte*> attachments;
    bool wants_attachment_elsewhere(const FrameHeader&) override { return elsewhere; }
    bool on_frame(Frame& frame) override {
      attachments.push_back(frame.attachment.data());
      return true;
    }
  } sink;
  FrameReader reader(FrameLimits{});
  FrameHeader header;
  header.attachment_bytes = 8000;
  Buffer memory(8000), shorter(7999);
  const std::byte* const where = memory.data();
  EXPECT_FALSE(reader.keep(memory, sink)) << "no attachment is awaited";
  ASSERT_TRUE(reader.feed(encoded(header), sink));
  EXPECT_FALSE(reader.keep(shorter, sink));
  EXPECT_TRUE(reader.keep(memory, sink));
  EXPECT_EQ(sink.attachments, std::vector{where});

  sink.elsewhere = true;
  Buffer other(8000);
  ASSERT_TRUE(reader.feed(encoded(header), sink));
  EXPECT_FALSE(reader.keep(other, sink));
  sink.elsewhere = false;
  ASSERT_TRUE(reader.feed(other.span().first(1), sink));
  EXPECT_FALSE(reader.keep(other, sink)) << "some of it is there already";
  EXPECT_EQ(sink.attachments.size(), 1u);
}

}  // namespace
}  // namespace weir::rpc
