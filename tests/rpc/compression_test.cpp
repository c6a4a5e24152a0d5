// Compression without connections: what was compressed comes out again, and nothing else does.
#include "rpc/wire/compression.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace weir::rpc {
namespace {

constexpr std::uint32_t most = 1 << 20;

class CompressionTest : public testing::TestWithParam<Compression> {
 protected:
  static std::string text(std::size_t size) {
    std::string all;
    while (all.size() < size) all += "order " + std::to_string(all.size() * 7919 % 1000) + "; ";
    all.resize(size);
    return all;
  }
  static Bytes packed(const std::string& body) {
    Bytes out;
    EXPECT_TRUE(compress(GetParam(), as_bytes(body), out));
    return out;
  }
};

TEST_P(CompressionTest, what_comes_out_is_what_went_in_and_was_smaller_between) {
  for (const std::size_t size : {100u, 1000u, 65536u, 1u << 20}) {
    const std::string body = text(size);
    const Bytes small = packed(body);
    EXPECT_LT(small.size(), body.size());
    Bytes back;
    ASSERT_TRUE(decompress(small.span(), all_compressions, most, back));
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(back.data()), back.size()), body);
  }
}

TEST_P(CompressionTest, what_would_not_get_smaller_is_left_as_it_is) {
  std::mt19937 random(1);
  std::string noise(4096, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  Bytes out;
  EXPECT_FALSE(compress(GetParam(), as_bytes(noise), out));
  for (const std::size_t size : {0u, 1u, 5u, 6u})
    EXPECT_FALSE(compress(GetParam(), as_bytes(text(size)), out));
}

TEST_P(CompressionTest, a_body_beyond_the_limit_is_refused_before_memory_is_taken_for_it) {
  const Bytes bomb = packed(std::string(most + 1, 'x'));
  EXPECT_LT(bomb.size(), 10'000u);
  Bytes out;
  const auto refused = decompress(bomb.span(), all_compressions, most, out);
  EXPECT_EQ(refused.error().code, Errc::too_large);
  EXPECT_EQ(out.capacity(), 0u);
}

TEST_P(CompressionTest, a_body_that_is_longer_than_it_says_is_refused) {
  for (const int by : {-1, 1}) {
    Bytes bomb = packed(std::string(100'000, 'x'));
    const std::uint32_t says = 100'000 + static_cast<std::uint32_t>(by);
    std::memcpy(bomb.data() + 1, &says, sizeof says);
    Bytes out;
    EXPECT_EQ(decompress(bomb.span(), all_compressions, most, out).error().code, Errc::protocol) << by;
    EXPECT_TRUE(out.empty());
  }
}

TEST_P(CompressionTest, a_body_that_is_cut_off_is_refused_wherever_that_is) {
  const Bytes whole = packed(text(2000));
  Bytes out;
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(decompress(whole.span().first(size), all_compressions, most, out).error().code, Errc::protocol)
        << size;
}

TEST_P(CompressionTest, only_what_was_agreed_on_is_taken) {
  Bytes body = packed(text(2000));
  Bytes out;
  const std::uint32_t others = all_compressions & ~bit_of(GetParam());
  EXPECT_EQ(decompress(body.span(), others, most, out).error().code, Errc::protocol);
  EXPECT_EQ(decompress(body.span(), 0, most, out).error().code, Errc::protocol);
  for (const unsigned unknown : {0u, 3u, 31u, 32u, 33u, 255u}) {
    body.data()[0] = static_cast<std::byte>(unknown);
    EXPECT_EQ(decompress(body.span(), all_compressions, most, out).error().code, Errc::protocol) << unknown;
  }
}

INSTANTIATE_TEST_SUITE_P(With, CompressionTest, testing::Values(Compression::lz4, Compression::zstd),
                         [](const auto& with) { return std::string(name_of(with.param)); });

}  // namespace
}  // namespace weir::rpc
