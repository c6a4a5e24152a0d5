// Frames that refer to large texts and binaries of a value: these are written from the application's memory,
// and the value may be destroyed once the frame is finished, however much the transport has taken.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rpc/codec/codec.hpp"
#include "rpc/link/frame_link.hpp"
#include "tests/rpc/recording_transport.hpp"

namespace referring {
struct Report {  // its wire form is a separate object
  std::string name;
};

// A sequence whose elements are made while it is iterated.
class Lines {
 public:
  using value_type = std::string;
  class iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = std::string;
    explicit iterator(char letter = 'a') : letter_(letter) {}
    std::string operator*() const { return std::string(50'000, letter_); }
    iterator& operator++() { return ++letter_, *this; }
    iterator operator++(int) { return iterator(letter_++); }
    bool operator==(const iterator&) const = default;

   private:
    char letter_;
  };
  iterator begin() const { return iterator('a'); }
  iterator end() const { return iterator('e'); }
  std::size_t size() const { return 4; }
  void clear() {}
};
}  // namespace referring

template <>
struct weir::rpc::Wire<referring::Report> {
  static void write(MsgpackWriter& to, const referring::Report& report) { to.text("report " + report.name); }
  static bool read(MsgpackReader& from, referring::Report& report) {
    std::string_view text;
    if (!from.text(text)) return false;
    report.name = text.substr(7);
    return true;
  }
};

namespace weir::rpc {
namespace {

using testing_support::RecordingTransport;

std::string letters(std::size_t bytes, std::size_t salt = 0) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i + salt) * 31 + i / 251);
  return text;
}

class SendingLink final : public FrameLink {
 public:
  SendingLink(asio::io_context& io, TransportPtr transport) : FrameLink(io, std::move(transport), {}) {}

  template <class T>
  std::size_t begin_with(const T& value) {
    const std::size_t begin = begin_frame(body_size<MessagePack>(value));
    MessagePack::write(body(), value);
    return begin;
  }
  template <class T>
  void send_value(const T& value) {
    const std::size_t begin = begin_with(value);
    FrameHeader header;
    header.id = ++id_;
    end_frame(begin, header);
  }
  void drop(std::size_t begin) { drop_frame(begin); }
  std::optional<Errc> ended;

 private:
  bool on_arrival(Frame&) override { return true; }
  void on_end(const Error& cause) override { ended = cause.code; }

  std::uint64_t id_ = 0;
};

template <class T>
std::string frame_of(const T& value, std::uint64_t id = 1) {
  Bytes frame;
  frame.grow(frame_header_bytes);
  MessagePack::write(frame, value);
  FrameHeader header;
  header.id = id;
  header.body_bytes = static_cast<std::uint32_t>(frame.size() - frame_header_bytes);
  encode(header, frame.data());
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

class ReferringFrames : public testing::Test {
 protected:
  ReferringFrames() { link_->start(); }

  void take_the_rest(std::size_t bytes) {
    while (transport_->all.size() < bytes) {
      transport_->room = 10'007;
      transport_->user().writable();
    }
  }
  bool was_written_from(const std::string& text) const {
    return transport_->written_from.contains(text.data());
  }

  asio::io_context io_;
  const std::shared_ptr<RecordingTransport> transport_ = std::make_shared<RecordingTransport>();
  const std::shared_ptr<SendingLink> link_ = std::make_shared<SendingLink>(io_, transport_);
};

TEST_F(ReferringFrames, are_written_from_where_the_text_is) {
  const std::string text = letters(100'000);
  link_->send_value(text);
  EXPECT_TRUE(transport_->all == frame_of(text));
  EXPECT_TRUE(was_written_from(text));
}

TEST_F(ReferringFrames, have_what_is_small_between_what_is_large) {
  const std::map<std::string, std::vector<std::string>> value = {
      {"first", {letters(40'000, 1), "small", letters(refer_from_bytes, 2), letters(20'000, 3)}},
      {"second", {}},
      {"third", {letters(1'000'000, 4), ""}}};
  link_->send_value(value);
  EXPECT_TRUE(transport_->all == frame_of(value));
  const auto& texts = value.at("first");
  EXPECT_TRUE(was_written_from(texts[0]));
  EXPECT_TRUE(was_written_from(texts[2]));
  EXPECT_FALSE(was_written_from(texts[3]));
  EXPECT_TRUE(was_written_from(value.at("third")[0]));
}

TEST_F(ReferringFrames, need_their_value_no_more_once_they_were_ended) {
  const std::vector<std::string> value = {letters(70'000, 1), letters(70'000, 2), letters(70'000, 3)};
  const std::string expected = frame_of(value);
  for (const std::size_t room : {0, 1, 41, 50, 69'999, 70'050, 140'000, 210'000}) {
    SCOPED_TRACE(room);
    const auto transport = std::make_shared<RecordingTransport>();
    const auto link = std::make_shared<SendingLink>(io_, transport);
    link->start();
    transport->room = room;
    std::vector<std::string> gone = value;
    link->send_value(gone);
    for (std::string& text : gone) text.assign(text.size(), '#');
    while (transport->all.size() < expected.size()) {
      transport->room = 9'001;
      transport->user().writable();
    }
    EXPECT_TRUE(transport->all == expected);
    EXPECT_EQ(link->waiting_bytes(), 0u);
  }
}

TEST_F(ReferringFrames, keep_their_order_behind_a_full_transport) {
  std::string expected;
  transport_->room = 50'000;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    const std::vector<std::string> value = {letters(i % 2 == 0 ? 100 : 90'000, i)};
    expected += frame_of(value, i);
    link_->send_value(value);
  }
  take_the_rest(expected.size());
  EXPECT_TRUE(transport_->all == expected);
}

TEST_F(ReferringFrames, that_are_dropped_leave_nothing) {
  const std::string text = letters(100'000);
  link_->drop(link_->begin_with(text));
  EXPECT_EQ(link_->waiting_bytes(), 0u);
  link_->send_value(std::string("small"));
  transport_->user().round_ended();
  EXPECT_EQ(transport_->all, frame_of(std::string("small")));
}

TEST_F(ReferringFrames, for_which_there_is_no_memory_end_the_link_and_nothing_more_is_written_of_them) {
  transport_->fails = true;
  EXPECT_THROW(link_->send_value(letters(100'000)), std::bad_alloc);
  EXPECT_FALSE(link_->is_open());
  EXPECT_EQ(link_->waiting_bytes(), 0u);
  EXPECT_EQ(link_->ended, std::nullopt) << "nobody hears of it while something is being sent";
  transport_->fails = false;
  io_.poll();
  EXPECT_EQ(link_->ended, Errc::connection_lost);
  EXPECT_EQ(transport_->all, "");
}

TEST_F(ReferringFrames, copy_what_was_made_only_to_be_written) {
  const std::pair<std::string, referring::Report> value = {letters(100'000), {letters(50'000, 1)}};
  link_->send_value(value);
  EXPECT_TRUE(transport_->all == frame_of(value));
  EXPECT_TRUE(was_written_from(value.first));
}

TEST_F(ReferringFrames, copy_elements_that_are_made_while_they_are_looked_at) {
  const std::pair<std::string, referring::Lines> value = {letters(100'000), {}};
  const std::pair<std::string, std::vector<std::string>> same = {value.first,
                                                                 {value.second.begin(), value.second.end()}};
  link_->send_value(value);
  EXPECT_TRUE(transport_->all == frame_of(same));
  EXPECT_TRUE(was_written_from(value.first));
}

struct CopiedRow {
  const char* name;
  bool blocks, full, compressed;
};
void PrintTo(const CopiedRow& row, std::ostream* to) { *to << row.name; }

class CopiedFrames : public ReferringFrames, public testing::WithParamInterface<CopiedRow> {};

TEST_P(CopiedFrames, do_not_refer) {
  transport_->has_blocks = GetParam().blocks;
  std::string expected;
  if (GetParam().full) {
    transport_->room = 0;
    link_->send_value(letters(40'000, 9));
    expected = frame_of(letters(40'000, 9), 1);
  }
  if (GetParam().compressed) {
    link_->use_compression({Compression::lz4, 1024});
    FrameHeader settings;
    settings.kind = FrameKind::settings;
    settings.compressions = all_compressions;
    std::array<std::byte, frame_header_bytes> bytes;
    encode(settings, bytes.data());
    transport_->user().received(bytes);
    transport_->user().round_ended();
    transport_->all.clear();
  }
  const std::string text = letters(100'000);
  link_->send_value(text);
  expected += frame_of(text, GetParam().full ? 2 : 1);
  EXPECT_FALSE(was_written_from(text));
  if (GetParam().compressed) {
    EXPECT_EQ(link_->stats().compressed_sent.bodies, 1u);
    return;
  }
  take_the_rest(expected.size());
  EXPECT_TRUE(transport_->all == expected);
}
INSTANTIATE_TEST_SUITE_P(Where, CopiedFrames,
                         testing::Values(CopiedRow{"the_transport_has_blocks", true, false, false},
                                         CopiedRow{"the_transport_is_full", false, true, false},
                                         CopiedRow{"bodies_are_compressed", false, false, true}),
                         [](const auto& row) { return row.param.name; });

TEST_F(ReferringFrames, of_mostly_small_things_are_copied_as_one) {
  std::vector<std::string> value(1000, letters(100));
  value.push_back(letters(40'000));
  link_->send_value(value);
  EXPECT_TRUE(transport_->all == frame_of(value));
  EXPECT_FALSE(was_written_from(value.back()));
}

}  // namespace
}  // namespace weir::rpc
