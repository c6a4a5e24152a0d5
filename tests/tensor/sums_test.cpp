// The order of additions: one after the other, each to the newest version.
#include "tensor/hub/sums.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace weir::tensor {
namespace {

constexpr DType uint64{1, 64, 1};

struct Adding : testing::Test {
  Catalogue catalogue{{.keep = 2}};
  int begun = 0;
  Sums sums{catalogue, [this] { ++begun; }};
  Metadata metadata{8, {{"", uint64, {1}, 0}}};

  static std::shared_ptr<const Source> source_of(std::uint64_t value) {
    auto kept = std::make_shared<const std::uint64_t>(value);
    return std::make_shared<const Source>(std::vector<Source::Piece>{std::as_bytes(std::span(kept.get(), 1))},
                                          kept);
  }
  void publish(std::uint64_t value) { ASSERT_TRUE(catalogue.publish("a", metadata, source_of(value))); }

  struct Pushed {
    std::uint64_t value;
    std::optional<Result<std::uint64_t>> how = {};
    Sums::Stay stay = {};
  };
  void enter(Pushed& pushed) {
    pushed.stay = sums.enter({.name = "a",
                              .metadata = &metadata,
                              .bytes = std::as_writable_bytes(std::span(&pushed.value, 1)),
                              .done = [&pushed](Result<std::uint64_t> how) {
                                pushed.how = std::move(how);
                                pushed.stay = {};
                              }});
  }
};

TEST_F(Adding, takes_the_version_that_is_newest_when_its_turn_comes) {
  Pushed one{1}, other{2};
  enter(one);
  enter(other);
  EXPECT_EQ(begun, 1);
  sums.step();
  ASSERT_TRUE(one.how);
  EXPECT_EQ(**one.how, 0U);
  EXPECT_FALSE(other.how);
  publish(40);
  sums.step();
  ASSERT_TRUE(other.how);
  EXPECT_EQ(**other.how, 1U);
  EXPECT_EQ(other.value, 42U);
  EXPECT_TRUE(sums.empty());
}

TEST_F(Adding, ends_with_its_stay) {
  Pushed one{1};
  enter(one);
  one.stay = {};
  EXPECT_TRUE(sums.empty());
  sums.step();
  EXPECT_FALSE(one.how);
}

TEST_F(Adding, a_version_that_came_meanwhile_is_not_overwritten) {
  publish(1);
  EXPECT_EQ(catalogue.publish("a", metadata, source_of(3), {.after = 0}).error().code, Errc::superseded);
  EXPECT_EQ(catalogue.publish("a", metadata, source_of(3), {.after = 1})->version, 2U);
}

}  // namespace
}  // namespace weir::tensor
