#include "tensor/arrays/tree.hpp"

#include <gtest/gtest.h>

namespace weir::tensor {
namespace {

constexpr DType bytes_type{1, 8, 1};

TEST(TreeOfTensors, packs_small_ones_and_leaves_large_ones_where_they_are) {
  std::vector<std::byte> large(small_tensor_bytes, std::byte{7});
  std::vector<std::vector<std::byte>> small(1000, std::vector<std::byte>(100, std::byte{3}));
  std::vector<TensorView> views;
  for (const auto& each : small) views.push_back({"s", bytes_type, {each.size()}, each.data()});
  views.push_back({"l", bytes_type, {large.size()}, large.data()});
  views.push_back({"s", bytes_type, {1}, small[0].data()});
  const Tree tree = make_tree(views, nullptr).value();
  ASSERT_EQ(tree.data->pieces().size(), 3U);  // the thousand small ones are one piece
  EXPECT_EQ(tree.data->pieces()[0].size(), 1000U * 128);
  EXPECT_EQ(tree.data->pieces()[1].data(), large.data());
  EXPECT_EQ(tree.data->bytes(), tree.metadata.data_bytes);
  EXPECT_EQ(tree.metadata.tensors[1000].offset, 128'000U);
}

TEST(TreeOfTensors, large_neighbours_in_memory_are_one_piece) {
  std::vector<std::byte> memory(3 * small_tensor_bytes + tensor_alignment);
  const auto view = [&](std::size_t from) {
    return TensorView{"l", bytes_type, {small_tensor_bytes}, memory.data() + from};
  };
  const std::vector<TensorView> neighbours = {view(0), view(small_tensor_bytes),
                                              view(2 * small_tensor_bytes)};
  EXPECT_EQ(make_tree(neighbours, nullptr).value().data->pieces().size(), 1U);
  const std::vector<TensorView> apart = {view(0), view(small_tensor_bytes + tensor_alignment)};
  EXPECT_EQ(make_tree(apart, nullptr).value().data->pieces().size(), 2U);
}

TEST(TreeOfTensors, a_single_array_is_not_copied_whatever_its_size) {
  const std::byte one{};
  const TensorView view{"", bytes_type, {}, &one};
  const Tree tree = make_tree(std::span(&view, 1), nullptr).value();
  ASSERT_EQ(tree.data->pieces().size(), 1U);
  EXPECT_EQ(tree.data->pieces()[0].data(), &one);
  EXPECT_EQ(tree.metadata.data_bytes, 1U);
}

TEST(TreeOfTensors, of_none_is_empty) {
  const Tree tree = make_tree({}, nullptr).value();
  EXPECT_EQ(tree.data->bytes(), 0U);
  EXPECT_TRUE(tree.metadata.tensors.empty());
}

}  // namespace
}  // namespace weir::tensor
