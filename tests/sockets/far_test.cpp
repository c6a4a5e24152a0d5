// What the ends on two hosts exchange, which address they ask, and how they verify the other end.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "sockets/calls/pieces.hpp"
#include "sockets/far_messages.hpp"
#include "sockets/held_bytes.hpp"
#include "sockets/networks.hpp"
#include "sockets/refusals.hpp"
#include "sockets/seal.hpp"
#include "sockets/secret.hpp"

namespace weir::sockets {
namespace {

using std::chrono::seconds;

FarRequest a_request() {
  FarRequest request;
  request.ring_bytes = 65536;
  request.sent_16 = 0x0102030405060708;
  request.received_16 = 9;
  std::iota(request.asker.address.begin(), request.asker.address.end(), std::uint8_t{1});
  request.asked.address[15] = 2;
  request.asker.port = 40000;
  request.asked.port = 7000;
  return request;
}

FarWords some_words() {
  return {.asks = true,
          .receives = true,
          .done = false,
          .gone = true,
          .want = Want::unread_back,
          .number = 1,
          .heard = 2,
          .produced = 3,
          .changes = 4,
          .ring_from = 5,
          .tcp_from = 6,
          .consumed = 7,
          .changes_seen = ~std::uint64_t{0}};
}

TEST(FarMessages, a_request_is_read_as_it_was_written_also_with_padding_behind) {
  const auto bytes = bytes_of(a_request());
  EXPECT_EQ(read_request(bytes), a_request());
  std::array<std::byte, FarRequest::bytes + 4> padded{};
  std::copy(bytes.begin(), bytes.end(), padded.begin());
  EXPECT_EQ(read_request(padded), a_request());
}

TEST(FarMessages, a_request_of_another_length_magic_version_or_ring_is_refused) {
  const auto bytes = bytes_of(a_request());
  EXPECT_FALSE(read_request(std::span(bytes).first(FarRequest::bytes - 1)));
  struct Wrong {
    std::size_t at;
    std::uint8_t value;
  };
  for (const auto& wrong :
       {Wrong{0, 'w'}, Wrong{1, 's'}, Wrong{2, 2}, Wrong{3, 11}, Wrong{3, 25}, Wrong{3, 255}}) {
    auto changed = bytes;
    changed[wrong.at] = static_cast<std::byte>(wrong.value);
    EXPECT_FALSE(read_request(changed)) << wrong.at << ' ' << int{wrong.value};
  }
}

TEST(FarMessages, a_refusal_names_the_port_to_ask_instead) {
  EXPECT_EQ(read_refusal(bytes_of(FarRefusal{.ask_port = 54321})), FarRefusal{.ask_port = 54321});
  EXPECT_FALSE(read_refusal({}));
  EXPECT_FALSE(read_refusal(std::array<std::byte, FarRefusal::bytes>{}));
}

TEST(FarMessages, a_hello_is_read_as_it_was_written) {
  const FarHello hello{.ring_bytes = 4096,
                       .rkey = 0xffffffff,
                       .ring_address = ~std::uint64_t{0},
                       .conversation = {.sent = {1, 2}, .received = {3, 4}}};
  const auto read = read_hello(bytes_of(hello));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ring_bytes, hello.ring_bytes);
  EXPECT_EQ(read->rkey, hello.rkey);
  EXPECT_EQ(read->ring_address, hello.ring_address);
  EXPECT_EQ(read->conversation.sent, hello.conversation.sent);
  EXPECT_EQ(read->conversation.received, hello.conversation.received);
}

TEST(FarMessages, words_are_read_as_they_were_written_and_nonsense_is_not) {
  const auto bytes = bytes_of(some_words());
  EXPECT_EQ(read_words(bytes), some_words());
  EXPECT_FALSE(read_hello(bytes));
  EXPECT_FALSE(read_words(std::span(bytes).first(far_message_bytes - 1)));
  for (const std::size_t at : {0u, 1u, 2u}) {
    auto changed = bytes;
    changed[at] = std::byte{0x80};
    EXPECT_FALSE(read_words(changed)) << at;
  }
}

TEST(FarMessages, a_return_is_read_as_it_was_written_and_nothing_else_is) {
  const FarReturn message{.arrived = 1 << 20, .conversation = {.sent = {1, 2}, .received = {3, 4}}};
  const auto bytes = bytes_of(message);
  const auto read = read_return(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->arrived, message.arrived);
  EXPECT_EQ(read->conversation.sent, message.conversation.sent);
  EXPECT_EQ(read->conversation.received, message.conversation.received);
  EXPECT_FALSE(read_return(std::span(bytes).first(FarReturn::bytes - 1)));
  auto changed = bytes;
  changed[7] = std::byte{'k'};
  EXPECT_FALSE(read_return(changed));
}

TEST(Judge, two_ends_are_of_one_connection_if_one_direction_is_the_same_and_none_is_different) {
  constexpr Beginning unknown{}, a{1, 0}, a_longer{1, 5}, a_other{1, 6}, b{2, 0};
  struct Case {
    Conversation mine, peers;
    Likeness likeness;
  };
  for (const auto& one :
       {Case{{a, b}, {b, a}, Likeness::same}, Case{{a, unknown}, {unknown, a}, Likeness::same},
        Case{{a, unknown}, {b, unknown}, Likeness::unknown},
        Case{{unknown, unknown}, {unknown, unknown}, Likeness::unknown},
        Case{{a, b}, {a, b}, Likeness::different}, Case{{a, b}, {a, a}, Likeness::different},
        Case{{a_longer, b}, {b, a}, Likeness::same}, Case{{a_longer, b}, {b, a_other}, Likeness::different}})
    EXPECT_EQ(mirror(one.mine, one.peers), one.likeness);
}

FirstBytes first_bytes(std::vector<std::string> writes) {
  FirstBytes first;
  std::uint64_t position = 0;
  for (auto& write : writes) {
    const iovec piece{write.data(), write.size()};
    first.note(position, {&piece, 1}, write.size());
    position += write.size();
  }
  return first;
}

TEST(Judge, a_beginning_is_known_after_16_bytes_and_better_after_64) {
  const FirstBytes first = first_bytes({std::string(64, 'a')});
  const FirstBytes other = first_bytes({std::string(63, 'a'), "b"});
  EXPECT_EQ(first.beginning({}, 15), Beginning{});
  EXPECT_NE(first.beginning({}, 16).after_16, 0u);
  EXPECT_EQ(first.beginning({}, 63).after_64, 0u);
  EXPECT_EQ(first.beginning({}, 64).after_16, other.beginning({}, 64).after_16);
  EXPECT_NE(first.beginning({}, 64).after_64, other.beginning({}, 64).after_64);
}

TEST(Judge, the_first_bytes_are_the_same_in_whatever_pieces_they_went_by) {
  const std::string text = "the quick brown fox jumps over the lazy dog, and then over all the others";
  const auto whole = first_bytes({text}).beginning({}, text.size());
  for (const std::size_t cut : {1u, 16u, 63u, 64u, 65u})
    EXPECT_EQ(first_bytes({text.substr(0, cut), text.substr(cut)}).beginning({}, text.size()), whole) << cut;
}

TEST(Seal, a_proof_holds_for_one_secret_one_speaker_and_one_connection) {
  const FarRequest request = a_request();
  const FirstBytes first = first_bytes({std::string(64, 'a')});
  const auto proof = [&](hash::SipKey secret, Speaker speaker, const FarRequest::End& asker,
                         const FarRequest::End& asked) {
    return first.beginning(sealing_key(secret, speaker, asker, asked), 64).after_16;
  };
  constexpr hash::SipKey secret{1, 2}, another{1, 3};
  FarRequest::End elsewhere = request.asked;
  elsewhere.port ^= 0x100;
  std::vector<std::uint64_t> proofs;
  for (const auto speaker : {Speaker::request, Speaker::asker, Speaker::asked})
    for (const auto& key : {secret, another, hash::SipKey{}}) {
      proofs.push_back(proof(key, speaker, request.asker, request.asked));
      proofs.push_back(proof(key, speaker, request.asked, request.asker));
      proofs.push_back(proof(key, speaker, request.asker, elsewhere));
      EXPECT_EQ(proofs.back(), proof(key, speaker, request.asker, elsewhere));
    }
  std::ranges::sort(proofs);
  EXPECT_EQ(std::ranges::adjacent_find(proofs), proofs.end());
}

class Secret : public testing::Test {
 protected:
  Secret() : path_(testing::TempDir() + "weir-secret-XXXXXX") { ::close(::mkstemp(path_.data())); }
  ~Secret() override { ::unlink(path_.c_str()); }
  void write(const std::string& bytes) { std::ofstream(path_) << bytes; }
  std::string path_;
};

TEST_F(Secret, is_the_contents_of_a_file_that_nobody_else_can_read) {
  write("sixteen bytes ..");
  const auto read = read_secret(path_);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->first, read_secret(path_)->first);
  EXPECT_NE(read->first, read->second);
  write("other bytes .....");
  EXPECT_NE(read->first, read_secret(path_)->first);
}

TEST_F(Secret, that_is_too_short_too_long_readable_or_not_there_is_none) {
  for (const std::size_t size : {0u, 15u, 4097u}) {
    write(std::string(size, 'a'));
    EXPECT_FALSE(read_secret(path_)) << size;
  }
  write("sixteen bytes ..");
  for (const mode_t mode : {0640, 0604, 0620}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_FALSE(read_secret(path_)) << mode;
  }
  EXPECT_FALSE(read_secret(testing::TempDir()));
  EXPECT_FALSE(read_secret(path_ + ".not"));
}

TEST(Pieces, are_copied_behind_what_is_skipped_and_no_further_than_they_go) {
  std::string a = "abc", b, c = "defgh";
  const std::array<iovec, 3> pieces{{{a.data(), 3}, {b.data(), 0}, {c.data(), 5}}};
  struct Case {
    std::size_t skip, bytes;
    const char* copied;
  };
  for (const auto& one : {Case{0, 8, "abcdefgh"}, Case{2, 3, "cde"}, Case{3, 9, "defgh"}, Case{8, 1, ""},
                          Case{1, 0, ""}, Case{0, 3, "abc"}}) {
    std::array<std::byte, 16> out{};
    const std::size_t size = copy_out_of(pieces, one.skip, out.data(), one.bytes);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), size), one.copied);
    HeldBytes held;
    held.keep(pieces, one.skip, one.bytes);
    EXPECT_EQ(held.size(), size);
    std::string into(one.bytes, '.');
    const iovec all{into.data(), into.size()};
    EXPECT_EQ(held.take({&all, 1}, 0, held.size(), true), size);
    EXPECT_EQ(held.take({&all, 1}, 0, held.size(), false), size);
    EXPECT_EQ(into.substr(0, size), one.copied);
    EXPECT_TRUE(held.empty());
  }
}

std::array<std::uint8_t, 16> v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

TEST(Networks, have_the_addresses_that_begin_like_them) {
  struct Case {
    const char* networks;
    std::array<std::uint8_t, 16> address;
    bool has;
  };
  for (const auto& one :
       {Case{"10.0.0.0/8", v4(10, 255, 0, 1), true}, Case{"10.0.0.0/8", v4(11, 0, 0, 0), false},
        Case{"10.0.0.0/9", v4(10, 128, 0, 0), false}, Case{"0.0.0.0/0", v4(1, 2, 3, 4), true},
        Case{"0.0.0.0/0", {0xfd}, false}, Case{"::/0", v4(1, 2, 3, 4), true},
        Case{"fd00::/8", {0xfd, 1}, true}, Case{"10.0.0.1", v4(10, 0, 0, 1), true},
        Case{"10.0.0.1", v4(10, 0, 0, 2), false}, Case{"fd00::/8,10.0.0.0/8", v4(10, 0, 0, 2), true},
        Case{"", v4(10, 0, 0, 2), false}}) {
    const auto networks = Networks::parse(one.networks);
    ASSERT_TRUE(networks) << networks.error();
    EXPECT_EQ(networks->have(one.address), one.has) << one.networks;
  }
}

TEST(Networks, that_make_no_sense_are_named) {
  for (const char* wrong :
       {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/-1", "fd00::/129", "host", "/8", ","}) {
    const auto networks = Networks::parse(wrong);
    ASSERT_FALSE(networks) << wrong;
    EXPECT_NE(networks.error().find('\''), std::string::npos) << networks.error();
  }
  std::string many = "::1";
  for (std::size_t i = 0; i < Networks::most; ++i) many += ",::1";
  EXPECT_FALSE(Networks::parse(many));
}

TEST(Refusals, stand_for_a_minute_and_then_twice_as_long_each_time_up_to_an_hour) {
  Refusals refusals;
  Refusals::TimePoint now{};
  const FarAddress there{v4(10, 0, 0, 1), 7000};
  seconds span{60};
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(refusals.stand(there, now));
    refusals.refused(there, now);
    EXPECT_TRUE(refusals.stand(there, now + span - seconds(1))) << span.count();
    now += span;
    EXPECT_FALSE(refusals.stand(there, now)) << span.count();
    span = std::min(2 * span, seconds(3600));
  }
  EXPECT_FALSE(refusals.stand({v4(10, 0, 0, 1), 7001}, now - seconds(1)));
  refusals.refused(there, now);
  refusals.accepted(there);
  EXPECT_FALSE(refusals.stand(there, now));
}

TEST(Refusals, are_bounded_and_that_which_ends_first_gives_way) {
  Refusals refusals;
  Refusals::TimePoint now{};
  for (std::uint32_t port = 0; port <= Refusals::most; ++port)
    refusals.refused({v4(10, 0, 0, 1), port}, now + seconds(port == 7 ? 0 : 1));
  EXPECT_EQ(refusals.size(), Refusals::most);
  EXPECT_FALSE(refusals.stand({v4(10, 0, 0, 1), 7}, now + seconds(2)));
  EXPECT_TRUE(refusals.stand({v4(10, 0, 0, 1), Refusals::most}, now + seconds(2)));
}

}  // namespace
}  // namespace weir::sockets
