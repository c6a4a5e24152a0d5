// When a link gives what waits to its transport: once a round, and before that when much waits.
#include "rpc/frame_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir::rpc {
namespace {

constexpr std::size_t most_waiting = 64 << 10;

class RecordingTransport final : public Transport {
 public:
  void start(TransportUser& user) override { user_ = &user; }
  std::size_t write(std::span<const asio::const_buffer> pieces) override {
    std::size_t offered = 0;
    for (const asio::const_buffer& piece : pieces) offered += piece.size();
    const std::size_t taken = std::min(offered, room);
    room -= taken;
    writes.push_back(taken);
    return taken;
  }
  void read_on(bool) override {}
  void close() override {}
  std::string peer() const override { return "recording"; }

  TransportUser& user() { return *user_; }
  std::size_t written() const {
    std::size_t bytes = 0;
    for (const std::size_t write : writes) bytes += write;
    return bytes;
  }

  std::size_t room = SIZE_MAX;
  std::vector<std::size_t> writes;

 private:
  TransportUser* user_ = nullptr;
};

// Answers each frame that arrives with `replies` frames of `reply_bytes`.
class AnsweringLink final : public FrameLink {
 public:
  AnsweringLink(asio::io_context& io, TransportPtr transport) : FrameLink(io, std::move(transport), {}) {}

  std::size_t replies = 0, reply_bytes = 0;
  int told_of_progress = 0, told_within_a_frame = 0;

 private:
  bool on_arrival(Frame& frame) override {
    in_frame_ = true;
    for (std::size_t i = 0; i < replies; ++i) {
      const std::size_t begin = begin_frame();
      encoded().grow(reply_bytes);
      FrameHeader header;
      header.kind = FrameKind::reply;
      header.id = frame.header.id;
      end_frame(begin, header);
    }
    in_frame_ = false;
    return true;
  }
  void on_end(const Error&) override {}
  void on_progress() override {
    ++told_of_progress;
    told_within_a_frame += in_frame_ ? 1 : 0;
  }

  bool in_frame_ = false;
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
  EXPECT_GT(transport_->written(), answer_bytes() - most_waiting);
  EXPECT_LE(std::ranges::max(transport_->writes), most_waiting + frame_header_bytes + link_->reply_bytes);
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

}  // namespace
}  // namespace weir::rpc
