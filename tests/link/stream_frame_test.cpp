// The frames of a stream: what is encoded parses, and what is not right does not.
#include "link/stream/stream_frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::link {
namespace {

using Bytes = std::vector<std::byte>;

constexpr StreamGreeting greeting{.source = {1, 2, 3},
                                  .destination = {4, 5, 6},
                                  .slot = 7,
                                  .target = {.slot = 8, .service = 0},
                                  .nonce = {std::byte{9}}};

Bytes run_frame(const StreamedRun& run) {
  const auto header = encode_run_frame(run);
  Bytes frame(header.begin(), header.end());
  frame.insert(frame.end(), run.bytes.begin(), run.bytes.end());
  return frame;
}

Parsed parsed(const Bytes& bytes) {
  Frame frame;
  return parse_frame(bytes, frame);
}

TEST(StreamFrames, hold_what_was_encoded) {
  Frame frame;
  const Bytes greets = encode_frame(greeting);
  ASSERT_EQ(parse_frame(greets, frame), Parsed::whole);
  EXPECT_EQ(frame.bytes, greets.size());
  const auto read = parse_greeting_body(frame.body);
  ASSERT_TRUE(read);
  EXPECT_EQ(encode_frame(*read), greets);

  const Bytes challenges = encode_frame(StreamChallenge{.slot = 5, .nonce = {std::byte{1}}, .proof = 6});
  ASSERT_EQ(parse_frame(challenges, frame), Parsed::whole);
  const auto challenge = parse_challenge_body(frame.body);
  ASSERT_TRUE(challenge);
  EXPECT_EQ(encode_frame(*challenge), challenges);

  ASSERT_EQ(parse_frame(encode_proof(77), frame), Parsed::whole);
  EXPECT_EQ(frame.kind, FrameKind::proof);

  ASSERT_EQ(parse_frame(encode_question(), frame), Parsed::whole);
  EXPECT_EQ(frame.kind, FrameKind::question);
  for (const bool hears : {true, false}) {
    const Bytes answer = encode_answer(hears);
    ASSERT_EQ(parse_frame(answer, frame), Parsed::whole);
    EXPECT_EQ(parse_answer_body(frame.body), hears);
  }

  const Bytes packets(300, std::byte{3});
  const Bytes whole =
      run_frame({.bytes = packets, .segment = 128, .first_id = 61, .traffic_class = 2, .hop_limit = 64});
  ASSERT_EQ(parse_frame(whole, frame), Parsed::whole);
  EXPECT_TRUE(std::ranges::equal(frame.run.bytes, packets));
  EXPECT_EQ(frame.run.segment, 128);
  EXPECT_EQ(frame.run.first_id, 61);
  EXPECT_EQ(frame.run.traffic_class, 2);
  EXPECT_EQ(frame.run.hop_limit, 64);
}

TEST(StreamFrames, wait_for_all_of_their_bytes) {
  for (const Bytes& whole : {encode_frame(greeting), encode_proof(1)})
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_EQ(parsed({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), Parsed::partial);
}

TEST(StreamFrames, are_broken_where_a_field_is_not_right) {
  const Bytes packets(300, std::byte{3});
  const StreamedRun good{.bytes = packets, .segment = 128};
  ASSERT_EQ(parsed(run_frame(good)), Parsed::whole);
  const auto with = [&](auto change) {
    StreamedRun run = good;
    change(run);
    return parsed(run_frame(run));
  };
  EXPECT_EQ(with([](StreamedRun& run) { run.segment = 15; }), Parsed::broken) << "shorter than a packet";
  EXPECT_EQ(with([](StreamedRun& run) { run.first_id = 62; }), Parsed::broken) << "more than a run has";
  EXPECT_EQ(with([](StreamedRun& run) { run.bytes = {}; }), Parsed::broken) << "empty";
  const Bytes long_run(max_streamed_bytes + 1);
  EXPECT_EQ(parsed(run_frame({.bytes = long_run, .segment = 4096})), Parsed::broken) << "too long";
  for (const std::size_t at : {0u, 1u, 2u, 3u, 4u, 6u, 8u}) {
    Bytes changed = encode_frame(greeting);
    changed[at] = std::byte{0x7f};
    EXPECT_EQ(parsed(changed), Parsed::broken) << at;
  }
}

TEST(StreamFrames, name_a_process_that_there_may_be) {
  const auto read = [](auto change) {
    StreamGreeting changed = greeting;
    change(changed);
    const Bytes whole = encode_frame(changed);
    return parse_greeting_body(std::span(whole).subspan(frame_header_bytes)).has_value();
  };
  EXPECT_TRUE(read([](StreamGreeting&) {}));
  EXPECT_TRUE(read([](StreamGreeting& it) { it.target = {.slot = 0, .service = 9}; }));
  EXPECT_FALSE(read([](StreamGreeting& it) { it.slot = 0; }));
  EXPECT_FALSE(read([](StreamGreeting& it) { it.slot = max_slots; }));
  EXPECT_FALSE(read([](StreamGreeting& it) { it.target = {}; }));
  EXPECT_FALSE(read([](StreamGreeting& it) { it.target.service = 9; }));
  EXPECT_FALSE(read([](StreamGreeting& it) { it.target.slot = max_slots; }));
}

TEST(StreamFrames, prove_the_key_for_one_stream_and_one_end) {
  const hash::SipKey key{1, 2}, other{1, 3};
  const StreamNonce nonce{std::byte{4}}, another{std::byte{5}};
  const auto proof = proof_of(&key, StreamEnd::dials, greeting, 8, nonce);
  EXPECT_EQ(proof_of(nullptr, StreamEnd::dials, greeting, 8, nonce), 0u);
  EXPECT_NE(proof, proof_of(&key, StreamEnd::answers, greeting, 8, nonce)) << "reflected";
  EXPECT_NE(proof, proof_of(&other, StreamEnd::dials, greeting, 8, nonce));
  EXPECT_NE(proof, proof_of(&key, StreamEnd::dials, greeting, 8, another)) << "replayed";
  StreamGreeting claims = greeting;
  claims.source[0] = 200;
  EXPECT_NE(proof, proof_of(&key, StreamEnd::dials, claims, 8, nonce)) << "of another address";
}

}  // namespace
}  // namespace weir::link
