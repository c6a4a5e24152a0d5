#include "tensor/hub/catalogue.hpp"

#include <gtest/gtest.h>

namespace weir::tensor {
namespace {

struct CatalogueTest : testing::Test {
  std::vector<std::byte> memory = std::vector<std::byte>(64);
  std::uint64_t publish(Catalogue& catalogue, std::string_view name, std::size_t bytes = 64) {
    const Metadata metadata{bytes, {{"", {1, 8, 1}, {bytes}, 0}}};
    auto source =
        std::make_shared<const Source>(std::vector<Source::Piece>{std::span(memory).first(bytes)}, nullptr);
    return catalogue.publish(name, metadata, std::move(source)).value().version;
  }
};

TEST_F(CatalogueTest, versions_count_and_names_keep_their_number) {
  Catalogue catalogue({});
  EXPECT_EQ(catalogue.find("a").name_id, 0U);
  EXPECT_EQ(publish(catalogue, "a"), 1U);
  EXPECT_EQ(publish(catalogue, "b"), 1U);
  EXPECT_EQ(publish(catalogue, "a"), 2U);
  EXPECT_EQ(catalogue.find("a").newest->number, 2U);
  EXPECT_EQ(catalogue.find(catalogue.find("b").name_id).newest->number, 1U);
  EXPECT_TRUE(catalogue.withdraw("a"));
  EXPECT_FALSE(catalogue.withdraw("a"));
  EXPECT_EQ(catalogue.find("a").newest, nullptr);
  EXPECT_EQ(publish(catalogue, "a"), 3U);
  EXPECT_EQ(catalogue.find(77U).name_id, 0U);
  EXPECT_EQ(catalogue.list(10).size(), 2U);
}

TEST_F(CatalogueTest, metadata_have_a_new_number_when_they_change) {
  Catalogue catalogue({});
  const auto id = [&](std::size_t bytes) {
    publish(catalogue, "a", bytes);
    return catalogue.find("a").newest->metadata_id;
  };
  const std::uint64_t first = id(8);
  EXPECT_EQ(id(8), first);
  const std::uint64_t second = id(16);
  EXPECT_NE(second, first);
  EXPECT_NE(id(8), first);  // numbers are not reused
}

TEST_F(CatalogueTest, revokes_the_oldest_of_more_than_keep) {
  Catalogue catalogue({.keep = 2});
  std::vector<VersionPtr> held;
  for (int i = 0; i < 4; ++i) {
    publish(catalogue, "a");
    held.push_back(catalogue.find("a").newest);
  }
  EXPECT_TRUE(held[0]->revoked);  // 2 and 3 are kept, 4 is the newest
  EXPECT_FALSE(held[1]->revoked);
  held.clear();
  publish(catalogue, "a");
  EXPECT_EQ(catalogue.live_bytes(), 64U);
}

TEST_F(CatalogueTest, refuses_metadata_of_other_bytes_and_too_many_names) {
  Catalogue catalogue({.most_names = 1});
  auto source = std::make_shared<const Source>(std::vector<Source::Piece>{}, nullptr);
  EXPECT_EQ(catalogue.publish("a", Metadata{1, {}}, source).error().code, Errc::bad_array);
  publish(catalogue, "a");
  EXPECT_EQ(catalogue.publish("b", Metadata{}, source).error().code, Errc::too_much);
  EXPECT_EQ(publish(catalogue, "a"), 2U);
}

}  // namespace
}  // namespace weir::tensor
