#include "tensor/arrays/rows.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::tensor {
namespace {

constexpr DType uint16{1, 16, 1};

Metadata array_of(std::vector<std::uint64_t> shape) {
  TensorInfo info{"", uint16, std::move(shape), 0};
  const std::uint64_t bytes = info.bytes().value_or(0);
  return {bytes, {std::move(info)}};
}

TEST(Rows, are_extents_of_the_versions_bytes) {
  struct Case {
    const char* what;
    std::vector<std::uint64_t> shape;
    std::vector<Rows> rows;
    std::uint64_t count;
    std::vector<Extent> extents;
  };
  const Case cases[] = {
      {"a slice", {10, 3}, {{2, 4}}, 4, {{12, 24}}},
      {"all", {10, 3}, {{0, 10}}, 10, {{0, 60}}},
      {"blocks in any order", {10, 3}, {{9, 1}, {3, 1}, {7, 1}}, 3, {{54, 6}, {18, 6}, {42, 6}}},
      {"neighbours are joined", {10, 3}, {{3, 1}, {4, 2}, {6, 1}}, 4, {{18, 24}}},
      {"the same twice", {10}, {{5, 1}, {5, 1}}, 2, {{10, 2}, {10, 2}}},
      {"rows of no bytes", {10, 0}, {{3, 2}}, 2, {}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    const auto made = cut(array_of(each.shape), each.rows);
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_EQ(made->extents, each.extents);
    EXPECT_EQ(made->metadata.tensors[0].shape[0], each.count);
    EXPECT_EQ(made->metadata.data_bytes, bytes_of(each.extents, 60));
  }
}

TEST(Rows, that_an_array_does_not_have_are_refused) {
  Metadata tree = array_of({4});
  tree.tensors.push_back(tree.tensors[0]);
  struct Case {
    const char* what;
    Metadata whole;
    std::vector<Rows> rows;
    Errc code;
    const char* says;
  };
  const Case cases[] = {
      {"beyond the end", array_of({10, 3}), {{10, 1}}, Errc::shape_mismatch, "row 10 of uint16 (10, 3)"},
      {"across the end", array_of({10, 3}), {{8, 3}}, Errc::shape_mismatch, "rows 8 to 10"},
      {"a count that wraps", array_of({10}), {{5, ~0ULL}}, Errc::shape_mismatch, "rows 5 to"},
      {"of an array without any", array_of({0}), {{0, 1}}, Errc::shape_mismatch, "row 0"},
      {"no rows", array_of({10}), {{5, 0}}, Errc::bad_array, "no rows"},
      {"without dimensions", array_of({}), {{0, 1}}, Errc::bad_array, "dimensions"},
      {"of a tree", tree, {{0, 1}}, Errc::bad_array, "tree"},
      {"too many runs", array_of({4096}), std::vector<Rows>(most_extents + 1, Rows{7, 1}), Errc::too_much,
       "1024"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    const auto made = cut(each.whole, each.rows);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, each.code);
    EXPECT_NE(made.error().what.find(each.says), std::string::npos) << made.error().what;
  }
}

TEST(Extents, must_lie_within_the_version) {
  const auto sum = [](std::vector<Extent> extents) { return bytes_of(extents, 100); };
  EXPECT_EQ(sum({{0, 100}, {99, 1}}), 101U);
  EXPECT_EQ(sum({{0, 101}}), std::nullopt);
  EXPECT_EQ(sum({{100, 1}}), std::nullopt);
  EXPECT_EQ(sum({{~0ULL, 2}}), std::nullopt);
}

TEST(Extents, are_parts_of_the_pieces_that_hold_them) {
  const std::uint64_t pieces[] = {10, 0, 20, 5};
  const auto parts = [&](std::vector<Extent> extents) {
    std::string said;
    for_each_part(pieces, extents, [&](std::size_t piece, std::uint64_t offset, std::uint64_t bytes) {
      said += std::to_string(piece) + ":" + std::to_string(offset) + "+" + std::to_string(bytes) + " ";
    });
    return said;
  };
  EXPECT_EQ(parts({{0, 35}}), "0:0+10 2:0+20 3:0+5 ");
  EXPECT_EQ(parts({{10, 1}}), "2:0+1 ");
  EXPECT_EQ(parts({{29, 2}, {9, 2}}), "2:19+1 3:0+1 0:9+1 2:0+1 ");
  EXPECT_EQ(parts({}), "");
}

}  // namespace
}  // namespace weir::tensor
