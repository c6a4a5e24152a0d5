// A hub that lies costs its reader a typed error, but no memory that the reader did not offer.
#include <gtest/gtest.h>

#include "tests/tensor/raw_hub.hpp"

namespace weir::tensor {
namespace {

using testing_support::RawHub;
using testing_support::test_provider;

std::vector<std::byte> metadata_of(std::uint64_t bytes) {
  return encode(Metadata{bytes, {{"", {1, 8, 1}, {bytes}, 0}}}).value();
}
wire::MetadataUpdate update(std::uint32_t index, std::uint64_t bytes) {
  const std::vector<std::byte> block = metadata_of(bytes);
  return {.index = index,
          .name_id = 1,
          .version = 1,
          .metadata_id = 1,
          .data_bytes = bytes,
          .metadata_bytes = block.size(),
          .metadata = block};
}

struct Lie {
  const char* name;
  RawHub::Answer answer;
  Errc expected;
};

const std::vector<Lie>& lies() {
  static const std::vector<Lie> all = {
      {"an_update_of_no_request",
       [](RdmaLink& link, const wire::Request& request) { link.send(update(request.index + 64, 8)); },
       Errc::protocol},
      {"metadata_that_are_none",
       [](RdmaLink& link, const wire::Request& request) {
         wire::MetadataUpdate wrong = update(request.index, 8);
         wrong.metadata[4] = wrong.metadata[5] = std::byte{0xff};
         link.send(wrong);
       },
       Errc::protocol},
      {"more_bytes_than_anybody_has",
       [](RdmaLink& link, const wire::Request& request) {
         link.send(update(request.index, std::uint64_t{1} << 45));
       },
       Errc::too_much},
      {"wild_metadata_length",
       [](RdmaLink& link, const wire::Request& request) {
         wire::MetadataUpdate wild = update(request.index, 8);
         wild.metadata_bytes = ~std::uint64_t{0};
         wild.metadata.clear();
         link.send(wild);
       },
       Errc::protocol},
      {"a_location_without_metadata",
       [](RdmaLink& link, const wire::Request& request) {
         link.send(wire::Location{request.index, 1, {{0x1000, 8, 1}}});
       },
       Errc::protocol},
      {"a_record_that_nobody_waits_for",
       [](RdmaLink& link, const wire::Request& request) {
         link.write({.source = std::make_shared<const Source>(std::vector<Source::Piece>{}, nullptr),
                     .to = {},
                     .record = {.generation = RawHub::generation, .index = request.index}});
       },
       Errc::protocol},
      {"a_message_that_readers_send",
       [](RdmaLink& link, const wire::Request& request) { link.send(wire::Cancel{request.index}); },
       Errc::protocol},
      {"two_lies_at_once",
       [](RdmaLink& link, const wire::Request& request) {
         link.send(update(request.index + 64, 8));
         link.send(update(request.index, std::uint64_t{1} << 45));  // after the end
       },
       Errc::protocol},
      {"an_error_that_is_none",
       [](RdmaLink& link, const wire::Request& request) {
         link.send(wire::ErrorStatus{request.index, Errc::ok, 0, "fine"});
       },
       Errc::protocol},
  };
  return all;
}

struct LyingHub : testing::TestWithParam<std::size_t> {};

TEST_P(LyingHub, costs_its_reader_a_typed_error) {
  const Lie& lie = lies()[GetParam()];
  const RawHub hub(lie.answer);
  const auto peer = Peer::connect(hub.address(), test_provider());
  ASSERT_TRUE(peer) << peer.error().what;
  for (int round = 0; round < 2; ++round) {  // twice: on a new connection, if the first was ended
    const auto failed = (*peer)->fetch("a", {.timeout = std::chrono::seconds(5)});
    ASSERT_FALSE(failed) << lie.name;
    EXPECT_EQ(failed.error().code, lie.expected) << lie.name << ": " << failed.error().what;
  }
}
INSTANTIATE_TEST_SUITE_P(Lies, LyingHub, testing::Range<std::size_t>(0, lies().size()),
                         [](const auto& row) { return lies()[row.param].name; });

TEST(SilentHub, costs_its_reader_the_timeout) {
  const RawHub hub([](RdmaLink&, const wire::Request&) {});
  const auto peer = Peer::connect(hub.address(), test_provider());
  ASSERT_TRUE(peer) << peer.error().what;
  const auto failed = (*peer)->fetch("a", {.timeout = std::chrono::milliseconds(50)});
  ASSERT_FALSE(failed);
}

}  // namespace
}  // namespace weir::tensor
