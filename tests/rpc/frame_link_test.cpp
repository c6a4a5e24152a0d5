// When a link passes waiting data to its transport: once a round, and earlier if there is much. Where large
// frames are stored meanwhile.
#include "rpc/link/frame_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "rpc/wire/block_cache.hpp"
#include "tests/rpc/recording_transport.hpp"

namespace weir::rpc {
namespace {

using testing_support::RecordingTransport;

constexpr std::size_t max_waiting = 64 << 10;

// Answers each frame that arrives with `replies` frames of `reply_bytes`.
class AnsweringLink final : public FrameLink {
 public:
  AnsweringLink(asio::io_context& io, TransportPtr transport) : FrameLink(io, std::move(transport), {}) {}

  std::size_t replies = 0, reply_bytes = 0;
  std::size_t expected_bytes = 0;  // of a reply, as passed to begin_frame()
  bool drops = false, noisy = false;
  std::function<void()> throws;  // called when a frame arrives, or memory for its attachment is needed
  std::optional<Errc> refused;
  int told_of_progress = 0, told_within_a_frame = 0;

 private:
  bool on_arrival(Frame& frame) override {
    if (throws) throws();
    in_frame_ = true;
    for (std::size_t i = 0; i < replies; ++i) {
      const std::size_t begin = begin_frame(expected_bytes);
      for (std::size_t at = 0; at < reply_bytes; at += 1000) {
        std::string text(std::min<std::size_t>(1000, reply_bytes - at), static_cast<char>('a' + i % 26));
        if (noisy) std::ranges::generate(text, [this] { return static_cast<char>(random_()); });
        encoded().append(as_bytes(text));
      }
      if (drops) {
        drop_frame(begin);
        continue;
      }
      FrameHeader header;
      header.kind = FrameKind::reply;
      header.id = frame.header.id;
      end_frame(begin, header);
    }
    in_frame_ = false;
    return true;
  }
  void on_end(const Error&) override {}
  void on_nonsense(const Error& why) override { refused = why.code; }
  Buffer make_attachment(const FrameHeader& header) override {
    if (throws) throws();
    return Buffer(header.attachment_bytes);
  }
  void on_progress() override {
    ++told_of_progress;
    told_within_a_frame += in_frame_ ? 1 : 0;
  }

  bool in_frame_ = false;
  std::mt19937 random_{1};
};

class FrameLinkTest : public testing::Test {
 protected:
  FrameLinkTest() { link_->start(); }

  void request_arrives() {
    FrameHeader header;
    header.id = 1;
    std::array<std::byte, frame_header_bytes> bytes;
    encode(header, bytes.data());
    transport_->user().received(bytes);
  }
  std::size_t answer_bytes() const { return link_->replies * (frame_header_bytes + link_->reply_bytes); }

  asio::io_context io_;
  const std::shared_ptr<RecordingTransport> transport_ = std::make_shared<RecordingTransport>();
  const std::shared_ptr<AnsweringLink> link_ = std::make_shared<AnsweringLink>(io_, transport_);
};

TEST_F(FrameLinkTest, small_replies_of_a_round_are_one_write) {
  link_->replies = 100;
  link_->reply_bytes = 128;
  request_arrives();
  EXPECT_TRUE(transport_->writes.empty());
  transport_->user().round_ended();
  EXPECT_EQ(transport_->writes, std::vector{answer_bytes()});
}

TEST_F(FrameLinkTest, much_that_waits_goes_out_before_the_round_ends) {
  link_->replies = 100;
  link_->reply_bytes = 16 << 10;
  request_arrives();
  EXPECT_GT(transport_->written(), answer_bytes() - max_waiting);
  EXPECT_LE(std::ranges::max(transport_->writes), max_waiting + frame_header_bytes + link_->reply_bytes);
  transport_->user().round_ended();
  EXPECT_EQ(transport_->written(), answer_bytes());
}

TEST_F(FrameLinkTest, progress_is_told_once_when_the_round_has_ended) {
  link_->replies = 8;
  link_->reply_bytes = 16 << 10;
  request_arrives();
  EXPECT_EQ(transport_->written(), answer_bytes());
  EXPECT_EQ(link_->told_of_progress, 0);
  transport_->user().round_ended();
  EXPECT_EQ(link_->told_of_progress, 1);
  EXPECT_EQ(link_->told_within_a_frame, 0);
}

TEST_F(FrameLinkTest, a_transport_that_was_full_is_asked_again_when_it_has_room) {
  link_->replies = 100;
  link_->reply_bytes = 16 << 10;
  transport_->room = 100'000;
  request_arrives();
  const std::size_t asked = transport_->writes.size();
  EXPECT_EQ(transport_->written(), 100'000U);
  request_arrives();
  transport_->user().round_ended();
  EXPECT_EQ(transport_->writes.size(), asked);
  transport_->room = SIZE_MAX;
  transport_->user().writable();
  EXPECT_EQ(transport_->written(), 2 * answer_bytes());
}

struct LargeRow {
  const char* name;
  std::size_t expected_bytes, reply_bytes;
  bool in_a_block_of_its_own;
};
void PrintTo(const LargeRow& row, std::ostream* to) { *to << row.name; }

class LargeFrames : public FrameLinkTest, public testing::WithParamInterface<std::tuple<LargeRow, bool>> {
 protected:
  LargeFrames() {
    transport_->has_blocks = std::get<1>(GetParam());
    link_->replies = 3;
    link_->expected_bytes = row().expected_bytes;
    link_->reply_bytes = row().reply_bytes;
  }
  static const LargeRow& row() { return std::get<0>(GetParam()); }
  std::string answer() const {
    std::string all;
    for (std::size_t i = 0; i < link_->replies; ++i) {
      FrameHeader header;
      header.kind = FrameKind::reply;
      header.id = 1;
      header.body_bytes = static_cast<std::uint32_t>(row().reply_bytes);
      std::array<char, frame_header_bytes> bytes;
      encode(header, reinterpret_cast<std::byte*>(bytes.data()));
      all.append(bytes.data(), bytes.size()).append(row().reply_bytes, static_cast<char>('a' + i));
    }
    return all;
  }
};

TEST_P(LargeFrames, come_out_whole_wherever_they_lay) {
  request_arrives();
  transport_->user().round_ended();
  EXPECT_TRUE(transport_->all == answer());
  EXPECT_EQ(transport_->block_was_written, row().in_a_block_of_its_own && transport_->has_blocks);
  EXPECT_EQ(transport_->blocks_out, 0);
}

TEST_P(LargeFrames, come_out_whole_by_parts) {
  transport_->room = 1001;
  request_arrives();
  transport_->user().round_ended();
  while (transport_->all.size() < answer_bytes()) {
    transport_->room = 10'007;
    transport_->user().writable();
  }
  EXPECT_TRUE(transport_->all == answer());
  EXPECT_EQ(transport_->blocks_out, 0);
}

TEST_P(LargeFrames, that_are_dropped_leave_nothing) {
  link_->drops = true;
  request_arrives();
  transport_->user().round_ended();
  EXPECT_EQ(transport_->all, "");
  EXPECT_EQ(transport_->blocks_out, 0);
  link_->drops = false;
  request_arrives();
  transport_->user().round_ended();
  EXPECT_TRUE(transport_->all == answer());
}

TEST_P(LargeFrames, that_wait_are_let_go_of_at_the_close) {
  transport_->room = 0;
  request_arrives();
  transport_->user().round_ended();
  EXPECT_EQ(transport_->blocks_out > 0, row().in_a_block_of_its_own && transport_->has_blocks);
  link_->close();
  EXPECT_EQ(transport_->blocks_out, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, LargeFrames,
                         testing::Combine(testing::Values(LargeRow{"as_expected", 100'000, 100'000, true},
                                                          LargeRow{"just_large", large_piece_bytes,
                                                                   large_piece_bytes, true},
                                                          LargeRow{"just_not", large_piece_bytes - 1,
                                                                   large_piece_bytes - 1, false},
                                                          LargeRow{"unexpected", 0, 100'000, true},
                                                          LargeRow{"expected_and_small", 100'000, 100, false},
                                                          LargeRow{"expected_and_empty", 100'000, 0, false}),
                                          testing::Bool()),
                         [](const auto& row_of) {
                           return std::string(std::get<0>(row_of.param).name) +
                                  (std::get<1>(row_of.param) ? "_with_blocks" : "_without");
                         });

// A frame that is larger than expected moves out of the transport's block.
TEST_F(FrameLinkTest, a_frame_that_outgrows_its_block_is_sent_from_elsewhere) {
  transport_->has_blocks = true;
  link_->replies = 2;
  link_->expected_bytes = 70'000;
  link_->reply_bytes = 400'000;
  request_arrives();
  transport_->user().round_ended();
  EXPECT_EQ(transport_->written(), answer_bytes());
  EXPECT_FALSE(transport_->block_was_written);
  EXPECT_EQ(transport_->blocks_out, 0);
}

// As a socket asks for memory, and as RDMA delivers data.
TEST_F(FrameLinkTest, an_attachment_for_which_there_is_no_memory_ends_the_link_and_not_the_program) {
  for (const bool asked : {false, true}) {
    SCOPED_TRACE(asked);
    const auto transport = std::make_shared<RecordingTransport>();
    const auto link = std::make_shared<AnsweringLink>(io_, transport);
    link->start();
    link->throws = [] { throw std::bad_alloc(); };
    FrameHeader header;
    header.attachment_bytes = 1000;
    std::array<std::byte, frame_header_bytes> bytes;
    encode(header, bytes.data());
    transport->user().received(bytes);
    if (asked)
      EXPECT_TRUE(transport->user().wanted().empty());
    else
      transport->user().received(bytes);
    EXPECT_FALSE(link->is_open());
    EXPECT_EQ(link->refused, Errc::too_large);
  }
}

TEST_F(FrameLinkTest, what_is_thrown_while_a_frame_is_handled_leaves_no_link_half_way) {
  link_->throws = [] { throw std::logic_error("a bug"); };
  EXPECT_THROW(request_arrives(), std::logic_error);
  EXPECT_FALSE(link_->is_open());
}

// A function that runs for a frame may make room for a held request.
class NestingLink final : public FrameLink {
 public:
  NestingLink(asio::io_context& io, TransportPtr transport) : FrameLink(io, std::move(transport), {}) {
    use_compression({Compression::lz4, 1024});
  }
  static std::vector<std::byte> packed(char letter) {
    Bytes bytes;
    EXPECT_TRUE(compress(Compression::lz4, as_bytes(std::string(body_bytes, letter)), bytes));
    return {bytes.span().begin(), bytes.span().end()};
  }

  static constexpr std::size_t body_bytes = 5000;
  std::vector<std::string> bodies;  // at the time when they were released

 private:
  bool on_arrival(Frame& frame) override {
    if (!std::exchange(nested_, true)) {
      const std::vector<std::byte> other = packed('b');
      Frame held{frame.header, other, {}};
      EXPECT_TRUE(deliver(held));
    }
    bodies.emplace_back(reinterpret_cast<const char*>(frame.body.data()), frame.body.size());
    return true;
  }
  void on_end(const Error&) override {}

  bool nested_ = false;
};

TEST_F(FrameLinkTest, a_compressed_body_stays_while_another_is_handed_on_in_its_midst) {
  const auto transport = std::make_shared<RecordingTransport>();
  const auto link = std::make_shared<NestingLink>(io_, transport);
  link->start();
  link->say_hello();
  const std::vector<std::byte> body = NestingLink::packed('a');
  FrameHeader header;
  header.flags = FrameFlag::compressed;
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  std::vector<std::byte> bytes(frame_header_bytes);
  encode(header, bytes.data());
  bytes.insert(bytes.end(), body.begin(), body.end());
  transport->user().received(bytes);
  const std::vector<std::string> wanted = {std::string(NestingLink::body_bytes, 'b'),
                                           std::string(NestingLink::body_bytes, 'a')};
  EXPECT_EQ(link->bodies, wanted);
}

// Memory for a compressed body is returned, whether the body got smaller or not.
TEST_F(FrameLinkTest, no_memory_is_kept_of_a_large_body_that_was_to_be_compressed) {
  for (const bool noisy : {false, true}) {
    auto link = std::make_shared<AnsweringLink>(io_, transport_);
    link->use_compression({Compression::lz4, 1024});
    link->replies = 1;
    link->reply_bytes = 1 << 20;
    link->noisy = noisy;
    link->start();
    FrameHeader settings;
    settings.kind = FrameKind::settings;
    settings.compressions = all_compressions;
    std::array<std::byte, frame_header_bytes> bytes;
    encode(settings, bytes.data());
    transport_->user().received(bytes);
    request_arrives();
    transport_->user().round_ended();
    EXPECT_EQ(link->stats().compressed_sent.bodies, noisy ? 0u : 1u);
    const std::size_t spare = block_cache::kept_bytes();
    link.reset();
    EXPECT_EQ(block_cache::kept_bytes(), spare) << (noisy ? "what did not get smaller" : "what did");
  }
}

}  // namespace
}  // namespace weir::rpc
