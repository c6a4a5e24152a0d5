#include "tensor/peer/peer_session.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::tensor {
namespace {

constexpr DType uint8{1, 8, 1};

// A link that a test brings down between two events: what it is asked for then fails, and on_end() comes
// later.
class TestLink final : public Link {
 public:
  bool up = true;
  std::vector<wire::Message> sent;

  bool is_up() const override { return up; }
  void send(const wire::Message& message) override {
    if (up) sent.push_back(message);
  }
  void write(Transfer) override {}
  Result<wire::Memory> expect(std::uint32_t, std::span<std::byte> memory) override {
    if (!up) return fail(Errc::closed, "the link is not up");
    return wire::Memory{1, memory.size(), 1};
  }
  void forget(std::uint32_t) override {}
  Result<std::vector<wire::Memory>> expose(const Source&) override { return fail(Errc::closed, "a reader"); }
  Result<void> read(std::uint32_t, std::span<const wire::Memory>) override {
    if (!up) return fail(Errc::closed, "the link is not up");
    return {};
  }
  bool can_read() const override { return true; }
  void leave() override {}
  void break_off(const Error&) override {}
  std::uint64_t generation() const override { return 7; }
  rdma::Endpoint remote() const override { return {}; }
  std::optional<std::uint64_t> arrived(std::uint32_t) const override { return {}; }
};

struct Nobody final : PeerSession::Owner {
  void on_finished() override {}
  bool dials_again(const Error&) override { return false; }
  void on_ended(const Error&) override {}
  void on_admitted() override {}
};

struct EndedLink : testing::Test {
  PeerLimits limits;
  std::shared_ptr<SpareMemory> spare = std::make_shared<SpareMemory>(std::size_t{1} << 20);
  PeerStats stats;
  Nobody owner;
  TestLink link;
  PeerSession session{limits, {}, *spare, stats, owner};
  std::vector<std::byte> block = must_encode();

  static std::vector<std::byte> must_encode() {
    return encode(Metadata{4, {TensorInfo{"", uint8, {4}, 0}}}).value();
  }
  void SetUp() override {
    session.set_link(link);
    session.up();
  }
  std::shared_ptr<Fetch> start() {
    auto fetch = std::make_shared<Fetch>();
    fetch->name = "a";
    session.start(fetch);
    return fetch;
  }
  void tell_metadata(const Fetch& fetch) {
    const auto frame = wire::encode(wire::MetadataUpdate{fetch.index, 1, 1, 5, 4, block.size(), block});
    session.on_frame(frame);
  }
  void expect_peer_gone(const Fetch& fetch) {
    EXPECT_FALSE(fetch.done);
    session.on_end(Error{Errc::peer_gone, "the hub has gone", 7});
    ASSERT_TRUE(fetch.done);
    EXPECT_EQ(fetch.failed->code, Errc::peer_gone) << fetch.failed->what;
  }
};

TEST_F(EndedLink, gives_its_reason_to_a_fetch_that_came_late) {
  const auto first = start();
  tell_metadata(*first);  // the next one asks with a destination
  link.up = false;
  const auto late = start();
  expect_peer_gone(*late);
  EXPECT_EQ(first->failed->code, Errc::peer_gone);
}

TEST_F(EndedLink, gives_its_reason_to_a_fetch_whose_metadata_came_late) {
  const auto fetch = start();
  link.up = false;
  const auto frame = wire::encode(wire::MetadataUpdate{fetch->index, 1, 1, 5, 4, block.size(), block});
  session.on_frame(frame);
  expect_peer_gone(*fetch);
}

TEST_F(EndedLink, gives_its_reason_to_a_fetch_that_began_to_read_late) {
  const auto fetch = start();
  tell_metadata(*fetch);
  link.up = false;
  session.on_frame(wire::encode(wire::Location{fetch->index, 1, {{1, 4, 1}}}));
  expect_peer_gone(*fetch);
}

}  // namespace
}  // namespace weir::tensor
