#include "tensor/arrays/metadata.hpp"

#include <gtest/gtest.h>

namespace weir::tensor {
namespace {

Metadata sample() {
  return {
      .data_bytes = 192,
      .tensors = {{"w", {2, 32, 1}, {4, 4}, 0}, {"b", {4, 16, 1}, {}, 64}, {"none", {0, 8, 1}, {0, 9}, 128}}};
}

TEST(MetadataBlock, comes_back_as_it_was) {
  const auto block = encode(sample());
  ASSERT_TRUE(block);
  EXPECT_EQ(parse_metadata(*block).value(), sample());
  EXPECT_EQ(parse_metadata(encode(Metadata{}).value()).value(), Metadata{});
}

TEST(MetadataBlock, no_prefix_and_nothing_longer_parses) {
  std::vector<std::byte> block = encode(sample()).value();
  for (std::size_t bytes = 0; bytes < block.size(); ++bytes)
    EXPECT_FALSE(parse_metadata(std::span(block).first(bytes))) << bytes;
  block.push_back({});
  EXPECT_FALSE(parse_metadata(block));
}

TEST(MetadataBlock, refuses_what_does_not_fit_together) {
  const auto with = [](auto change) {
    Metadata metadata = sample();
    change(metadata);
    return encode(metadata);
  };
  EXPECT_FALSE(with([](Metadata& m) { m.data_bytes = 65; }));
  EXPECT_FALSE(with([](Metadata& m) { m.tensors[1].offset = 32; }));
  EXPECT_FALSE(with([](Metadata& m) { m.tensors[1].offset = ~0ULL; }));
  EXPECT_FALSE(with([](Metadata& m) { m.tensors[0].shape = {1ULL << 32, 1ULL << 32}; }));
  EXPECT_FALSE(with([](Metadata& m) { m.tensors[0].dtype.bits = 3; }));
  EXPECT_FALSE(with([](Metadata& m) { m.tensors[0].dtype.lanes = 0; }));
  EXPECT_FALSE(with([](Metadata& m) { m.tensors[0].name = std::string(1025, 'n'); }));
  EXPECT_FALSE(with([](Metadata& m) { m.tensors[0].shape = std::vector<std::uint64_t>(65, 1); }));
  EXPECT_FALSE(with([](Metadata& m) { m.data_bytes = ~0ULL; }));
  EXPECT_TRUE(with([](Metadata& m) { m.tensors[2].shape = {~0ULL, ~0ULL, 0}; }));
}

TEST(MetadataBlock, takes_no_memory_for_tensors_that_it_does_not_hold) {
  std::vector<std::byte> block = encode(sample()).value();
  block[4] = block[5] = block[6] = std::byte{0xff};
  EXPECT_FALSE(parse_metadata(block));
}

}  // namespace
}  // namespace weir::tensor
