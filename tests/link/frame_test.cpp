// Which bytes the link accepts as a frame, and that it accepts no others.
#include "link/frame.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>

#include "tests/link/fixture.hpp"

namespace weir::link {
namespace {

struct Pair {
  UniqueFd ours, theirs;
};
Pair socket_pair() {
  int both[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
  return {UniqueFd(both[0]), UniqueFd(both[1])};
}

TEST(Frame, what_is_encoded_is_parsed_back) {
  const auto packet = encode_frame(FrameType::message, 7, 99, bytes("body"), 0);
  const auto frame = parse_frame(packet, {});
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->type, FrameType::message);
  EXPECT_EQ(frame->kind, 7);
  EXPECT_EQ(frame->request, 99u);
  EXPECT_EQ(text(frame->body), "body");
}

struct BadFrame {
  const char* name;
  std::function<void(FrameHeader&, std::vector<std::byte>& body)> spoil;
};
class Malformed_frame : public testing::TestWithParam<BadFrame> {};

TEST_P(Malformed_frame, is_not_parsed) {
  FrameHeader header{.magic = frame_magic,
                     .version = frame_version,
                     .type = FrameType::message,
                     .kind = 1,
                     .body_bytes = 4,
                     .fd_count = 0,
                     .zero = 0,
                     .request = 0};
  std::vector<std::byte> body(4);
  const auto packet_of = [&] {
    std::vector<std::byte> packet(sizeof header);
    std::memcpy(packet.data(), &header, sizeof header);
    packet.insert(packet.end(), body.begin(), body.end());
    return packet;
  };
  ASSERT_TRUE(parse_frame(packet_of(), {}));
  GetParam().spoil(header, body);
  EXPECT_FALSE(parse_frame(packet_of(), {}));
}

using Body = std::vector<std::byte>;
INSTANTIATE_TEST_SUITE_P(
    Frame, Malformed_frame,
    testing::Values(BadFrame{"wrong_magic", [](FrameHeader& h, Body&) { h.magic ^= 1; }},
                    BadFrame{"other_version", [](FrameHeader& h, Body&) { h.version++; }},
                    BadFrame{"type_zero", [](FrameHeader& h, Body&) { h.type = FrameType{0}; }},
                    BadFrame{"type_unknown", [](FrameHeader& h, Body&) { h.type = FrameType{6}; }},
                    BadFrame{"body_shorter_than_said", [](FrameHeader&, Body& b) { b.pop_back(); }},
                    BadFrame{"body_longer_than_said", [](FrameHeader&, Body& b) { b.push_back({}); }},
                    BadFrame{"length_that_wraps", [](FrameHeader& h, Body&) { h.body_bytes = 0xffffffff; }},
                    BadFrame{"descriptors_missing", [](FrameHeader& h, Body&) { h.fd_count = 1; }},
                    BadFrame{"reserved_not_zero", [](FrameHeader& h, Body&) { h.zero = 1; }},
                    BadFrame{"reply_to_nothing", [](FrameHeader& h, Body&) { h.type = FrameType::reply; }},
                    BadFrame{"body_over_the_limit",
                             [](FrameHeader& h, Body& b) {
                               b.resize(max_message_bytes + 1);
                               h.body_bytes = static_cast<std::uint32_t>(b.size());
                             }}),
    [](const auto& one) { return one.param.name; });

TEST(Frame, every_truncation_of_a_frame_is_malformed) {
  const auto packet = encode_frame(FrameType::hello, 0, 0, bytes("0123456789abcdef"), 0);
  for (std::size_t size = 0; size < packet.size(); ++size) {
    EXPECT_FALSE(parse_frame(std::span(packet).first(size), {})) << size;
  }
}

TEST(Frame, a_hello_names_a_legal_slot) {
  const auto hello = [](std::uint16_t slot) {
    const HelloPrefix prefix{.slot = slot, .zero = {}, .incarnation = 5};
    Body body(sizeof prefix);
    std::memcpy(body.data(), &prefix, sizeof prefix);
    return parse_hello(body).has_value();
  };
  EXPECT_FALSE(hello(0));
  EXPECT_TRUE(hello(1));
  EXPECT_TRUE(hello(max_slots - 1));
  EXPECT_FALSE(hello(max_slots));
  EXPECT_FALSE(parse_hello(Body(sizeof(HelloPrefix) - 1)));
}

TEST(Frame, receiving_tells_nothing_yet_and_the_end_apart) {
  auto [ours, theirs] = socket_pair();
  EXPECT_TRUE(std::holds_alternative<WouldBlock>(receive_frame(ours.get())));
  theirs.reset();
  EXPECT_TRUE(std::holds_alternative<Ended>(receive_frame(ours.get())));
}

TEST(Frame, descriptors_of_a_malformed_packet_are_closed) {
  auto [ours, theirs] = socket_pair();
  UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  const int fd = event.get();
  auto packet = encode_frame(FrameType::message, 1, 0, {}, 1);
  packet[0] ^= std::byte{1};
  const int next_free = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
  ::close(next_free);
  ASSERT_EQ(transmit_frame(theirs.get(), packet, std::span(&fd, 1)), 0);
  EXPECT_TRUE(std::holds_alternative<Malformed>(receive_frame(ours.get())));
  const int still_free = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
  ::close(still_free);
  EXPECT_EQ(still_free, next_free);
}

TEST(Frame, received_descriptors_close_on_exec) {
  auto [ours, theirs] = socket_pair();
  UniqueFd event(::eventfd(0, 0));
  const int fd = event.get();
  ASSERT_EQ(transmit_frame(theirs.get(), encode_frame(FrameType::message, 1, 0, {}, 1), std::span(&fd, 1)),
            0);
  const auto received = receive_frame(ours.get());
  const auto* frame = std::get_if<Frame>(&received);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(::fcntl(frame->fds.at(0).get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Frame, a_packet_longer_than_any_frame_is_malformed) {
  auto [ours, theirs] = socket_pair();
  const Body packet(max_frame_bytes + 1);
  ASSERT_EQ(transmit_frame(theirs.get(), packet, {}), 0);
  EXPECT_TRUE(std::holds_alternative<Malformed>(receive_frame(ours.get())));
}

}  // namespace
}  // namespace weir::link
