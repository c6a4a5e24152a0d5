// Compares SipHash-1-3 with Python 3.11's hash(bytes), which is the same function: PYTHONHASHSEED=0 gives the
// key of zeros, PYTHONHASHSEED=1 the other key.
#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

#include "hash/keyed.hpp"

namespace weir::hash {
namespace {

constexpr SipKey zeros{};
constexpr SipKey other{0xaed66ce184be2329, 0xebe9bbf1f1499052};

struct Vector {
  SipKey key;
  std::size_t bytes;  // 0, 1, 2, ...
  std::uint64_t hash;
};
const Vector vectors[] = {
    {zeros, 1, 0x68a914128e01e473},  {zeros, 2, 0x10bac45c41e3669},   {zeros, 3, 0x4d4c9a4a8ef6e0ad},
    {zeros, 4, 0x7cc43f98813e4dbd},  {zeros, 5, 0x5abe2169dff36275},  {zeros, 7, 0x2f098ab0c751325a},
    {zeros, 8, 0xead411e67ebe2eea},  {zeros, 9, 0x75927f9d95124362},  {zeros, 15, 0xf30eb725bb91c9ea},
    {zeros, 16, 0x8972188433a5c5b7}, {zeros, 17, 0x4883c49a2c009c1d}, {zeros, 31, 0x169739443111d49b},
    {zeros, 64, 0x75e05fd5bbc870c6}, {other, 1, 0xecd3e5afcecda4b9},  {other, 2, 0xbf360f1ea1745965},
    {other, 3, 0x8d5b20ab227ba858},  {other, 4, 0x968a3280faeeb716},  {other, 5, 0xbbda3b5f513c3d69},
    {other, 7, 0xfd15e78052a69ddf},  {other, 8, 0xc0b5739e7e28dd01},  {other, 9, 0x208a1a5a0cbbf778},
    {other, 15, 0xfa87985f39e97a53}, {other, 16, 0x12e9d283f9f37002}, {other, 17, 0x9f5bb4237f61907f},
    {other, 31, 0xb8c17103f21d8810}, {other, 64, 0x7e644b6edc375dc8},
};

std::string counted(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i);
  return text;
}

TEST(SipHash, is_what_others_compute) {
  for (const Vector& vector : vectors)
    EXPECT_EQ(siphash(vector.key, counted(vector.bytes)), vector.hash) << vector.bytes << " bytes";
}

// The authors' vectors: the key and the message count up from 0 (appendix A of the paper, and their code).
TEST(SipHash, with_two_rounds_a_word_is_what_its_authors_compute) {
  constexpr SipKey counting{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  const std::pair<std::size_t, std::uint64_t> rows[] = {
      {0, 0x726fdb47dd0e0e31}, {1, 0x74f839c593dc67fd}, {8, 0x93f5f5799a932462}, {15, 0xa129ca6149be45e5}};
  for (const auto& [bytes, mac] : rows)
    EXPECT_EQ(finish_with(SipMacState(counting), counted(bytes)), mac) << bytes << " bytes";
}

TEST(SipHash, of_a_word_is_that_of_its_bytes) {
  EXPECT_EQ(siphash(zeros, std::uint64_t{0x0706050403020100}), siphash(zeros, counted(8)));
}

TEST(ProcessKey, is_drawn_once_and_is_not_known_beforehand) {
  EXPECT_EQ(&process_key(), &process_key());
  EXPECT_FALSE(process_key().first == 0 && process_key().second == 0);
}

TEST(Keyed, hashes_texts_integers_and_pairs) {
  EXPECT_EQ(Keyed{}("abc"), siphash(process_key(), "abc"));
  EXPECT_EQ(Keyed{}(7u), Keyed{}(std::uint64_t{7}));
  EXPECT_NE(Keyed{}(std::pair(1, std::string("a"))), Keyed{}(std::pair(2, std::string("a"))));
  EXPECT_NE(Keyed{}(std::pair(1, std::string("a"))), Keyed{}(std::pair(1, std::string("b"))));
}

// std::hash of an integer is the integer, so multiples of the bucket count all fall into one bucket.
TEST(Keyed, spreads_keys_that_the_standard_hash_gathers) {
  std::unordered_set<std::uint64_t, Keyed> keyed(4096);
  std::unordered_set<std::uint64_t> standard(4096);
  const std::size_t buckets = keyed.bucket_count();
  ASSERT_EQ(standard.bucket_count(), buckets);
  for (std::uint64_t i = 0; i < buckets; ++i) {
    keyed.insert(i * buckets);
    standard.insert(i * buckets);
  }
  EXPECT_EQ(standard.bucket_size(0), buckets) << "these are no collisions any more: choose others";
  std::size_t longest = 0;
  for (std::size_t i = 0; i < keyed.bucket_count(); ++i) longest = std::max(longest, keyed.bucket_size(i));
  EXPECT_LT(longest, 20u);
}

}  // namespace
}  // namespace weir::hash
