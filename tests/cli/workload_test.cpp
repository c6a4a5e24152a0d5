// The requests of weir-benchmark: in a ring, in mixes of tests, and with which keys.
#include "cli/benchmark/workload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/benchmark/key_numbers.hpp"
#include "cli/benchmark/request_ring.hpp"

namespace weir::benchmark {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t occurrences(const std::string& text, const std::string& of) {
  std::size_t found = 0;
  for (auto at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++found;
  return found;
}

TEST(RequestRing, holds_the_requests_back_to_back) {
  const RequestRing ring({"SET", {"SET", "k", "v"}}, 3);
  const std::string one = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
  EXPECT_EQ(ring.size(), 3u);
  EXPECT_EQ(text_of(ring.bytes(0, 1)), one);
  EXPECT_EQ(text_of(ring.bytes(0, 3)), one + one + one);
  EXPECT_EQ(text_of(ring.bytes(2, 1)), one);
  EXPECT_EQ(text_of(ring.bytes(3, 0)), "");
  EXPECT_FALSE(ring.has_random_digits());
  EXPECT_EQ(text_of(RequestRing({"PING_INLINE", {"PING"}, true}, 1).bytes(0, 1)), "PING\r\n");
}

TEST(RequestRing, changes_the_numbers_of_those_requests_and_no_others) {
  RequestRing ring({"MSET", {"MSET", "a:__rand_int__", "v", "b:__rand_int__", "v"}}, 4);
  KeyNumbers numbers({KeyDistribution::Shape::sequential}, 1000, 1, 5);
  ring.renumber(1, 2, numbers);
  EXPECT_THAT(text_of(ring.bytes(1, 1)), HasSubstr("a:000000000005"));
  EXPECT_THAT(text_of(ring.bytes(1, 1)), HasSubstr("b:000000000006"));
  EXPECT_THAT(text_of(ring.bytes(2, 1)), HasSubstr("b:000000000008"));
  for (const std::size_t untouched : {0, 3}) {
    EXPECT_THAT(text_of(ring.bytes(untouched, 1)), HasSubstr("a:000000000000"));
    EXPECT_THAT(text_of(ring.bytes(untouched, 1)), HasSubstr("b:000000000000"));
  }
}

TEST(RequestRing, of_a_mix_has_each_test_in_its_share) {
  const auto mixed = mixed_workload("get:9,SET:1", 3, {.random = true});
  ASSERT_TRUE(mixed);
  for (const std::size_t least : {1, 10, 16}) {
    const RequestRing ring(*mixed, least);
    EXPECT_EQ(ring.size(), least <= 10 ? 10u : 20u);
    const auto all = text_of(ring.bytes(0, ring.size()));
    EXPECT_EQ(occurrences(all, "GET"), ring.size() / 10 * 9);
    EXPECT_EQ(occurrences(all, "SET"), ring.size() / 10);
    std::string one_by_one;
    for (std::size_t i = 0; i < ring.size(); ++i) one_by_one += text_of(ring.bytes(i, 1));
    EXPECT_EQ(one_by_one, all);
  }
}

TEST(MixedWorkload, that_makes_no_sense_is_refused) {
  for (const auto* text : {"", "get", "get:", "get:0", "get:x", "nosuch:1", "get:1,,set:1", "get:1001",
                           "get:1000,set:1", "get:99999999999999999999", ":1", "get:-1"}) {
    const auto mixed = mixed_workload(text, 3, {});
    ASSERT_FALSE(mixed) << text;
    EXPECT_THAT(mixed.error().what, HasSubstr("--mix get:9,set:1")) << text;
  }
}

TEST(StandardWorkloads, run_scripts_and_streams_only_by_name) {
  const auto titles_of = [](const Words& names) {
    Words titles;
    const auto chosen = standard_workloads(names, 3, {});
    for (const auto& workload : *chosen) titles.push_back(workload.title);
    return titles;
  };
  EXPECT_EQ(titles_of({}).back(), "MSET (10 keys)");
  EXPECT_EQ(titles_of({"xread", "evalsha"}),
            (Words{"XADD", "XREAD (first 10 entries)", "EVALSHA (3 commands)"}));
}

TEST(StandardWorkloads, load_the_script_that_they_call_by_its_hash) {
  const Words names{"evalsha"};
  const auto workload = standard_workloads(names, 3, {})->front();
  const auto& script = workload.preparation.back();
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  ASSERT_EQ(EVP_Digest(script.data(), script.size(), digest, &length, EVP_sha1(), nullptr), 1);
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    constexpr std::string_view digits = "0123456789abcdef";
    hex += {digits[digest[i] >> 4], digits[digest[i] & 15]};
  }
  EXPECT_EQ(workload.arguments[1], hex);
}

std::vector<std::uint64_t> draw(KeyDistribution keys, std::uint64_t keyspace, std::size_t count,
                                std::uint64_t seed = 1) {
  KeyNumbers numbers(keys, keyspace, seed);
  std::vector<std::uint64_t> drawn(count);
  for (auto& number : drawn) number = numbers.next();
  return drawn;
}

TEST(KeyNumbers, stay_below_the_keyspace_and_are_the_same_for_the_same_seed) {
  using Shape = KeyDistribution::Shape;
  for (const auto shape : {Shape::uniform, Shape::zipf, Shape::sequential})
    for (const std::uint64_t keyspace : {1ULL, 2ULL, 3ULL, 1000ULL, 1ULL << 62}) {
      const auto drawn = draw({shape}, keyspace, 300);
      EXPECT_LT(*std::ranges::max_element(drawn), keyspace);
      EXPECT_EQ(drawn, draw({shape}, keyspace, 300));
      if (shape != Shape::sequential && keyspace == 1000) {
        EXPECT_NE(drawn, draw({shape}, keyspace, 300, 2));
      }
    }
}

TEST(KeyNumbers, that_are_uniform_take_all_keys_about_equally) {
  std::vector<std::size_t> seen(10);
  for (const auto number : draw({}, 10, 20'000)) ++seen[number];
  for (const auto times : seen) EXPECT_NEAR(static_cast<double>(times), 2000, 250);
}

TEST(KeyNumbers, that_are_zipf_take_each_key_as_often_as_its_rank_says) {
  constexpr std::size_t keys = 50, draws = 400'000;
  for (const double exponent : {0.5, 0.99, 1.0, 1.5, 3.0}) {
    std::vector<double> seen(keys);
    for (const auto number : draw({KeyDistribution::Shape::zipf, exponent}, keys, draws)) ++seen[number];
    double sum = 0;
    for (std::size_t k = 1; k <= keys; ++k) sum += std::pow(static_cast<double>(k), -exponent);
    for (std::size_t k = 1; k <= keys; ++k) {
      const double expected = draws * std::pow(static_cast<double>(k), -exponent) / sum;
      EXPECT_NEAR(seen[k - 1], expected, 6 * std::sqrt(expected) + 6)
          << "rank " << k << ", exponent " << exponent;
    }
  }
}

TEST(KeyNumbers, that_are_sequential_go_through_the_keyspace_together) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t source = 0; source < 4; ++source) {
    KeyNumbers numbers({KeyDistribution::Shape::sequential}, 12, 1, source, 4);
    for (int i = 0; i < 3; ++i) seen.insert(numbers.next());
    EXPECT_EQ(numbers.next(), source) << "begins again";
  }
  EXPECT_EQ(seen.size(), 12u);
}

TEST(KeyDistribution, is_named_on_the_command_line) {
  EXPECT_EQ(key_distribution_named("zipf:1.25")->exponent, 1.25);
  EXPECT_EQ(key_distribution_named("zipf")->shape, KeyDistribution::Shape::zipf);
  EXPECT_EQ(key_distribution_named("sequential")->shape, KeyDistribution::Shape::sequential);
  for (const auto* text :
       {"", "zip", "zipf:", "zipf:0", "zipf:-1", "zipf:11", "zipf:1x", "zipf:nan", "uniform:2"})
    EXPECT_FALSE(key_distribution_named(text)) << text;
}

}  // namespace
}  // namespace weir::benchmark
