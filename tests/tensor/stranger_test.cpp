// A peer that knows where the hub expects another peer's push, the address and the key included.
#include <gmock/gmock.h>

#include "tests/tensor/raw_reader.hpp"

namespace weir::tensor {
namespace {

using testing_support::make_hub;
using testing_support::must;
using testing_support::RawReader;

class TensorStranger : public testing::TestWithParam<std::uint64_t> {
 protected:
  std::unique_ptr<Hub> hub = make_hub({.push = {.names = "grad/*"}});

  // Makes the hub expect a push of so many bytes.
  static wire::Memory begin(RawReader& raw, std::uint64_t bytes) {
    std::vector<std::byte> block = encode(Metadata{bytes, {{"", {1, 8, 1}, {bytes}, 0}}}).value();
    raw.link().send(wire::Push{.index = 65,
                               .data_bytes = bytes,
                               .metadata_bytes = block.size(),
                               .name = "grad/1",
                               .metadata = std::move(block)});
    return std::get<wire::ReRequest>(raw.next()).to;
  }
  Transfer transfer(const wire::Memory& to, std::uint64_t size, std::byte value) const {
    const auto bytes = std::make_shared<const std::vector<std::byte>>(size, value);
    return {.source = std::make_shared<const Source>(std::vector<Source::Piece>{*bytes}, bytes),
            .to = to,
            .record = {.generation = hub->generation(), .bytes = size, .index = 65}};
  }
};

TEST_P(TensorStranger, cannot_write_where_another_pushes) {
  const std::uint64_t bytes = GetParam();
  RawReader neighbour(*hub), attacker(*hub);
  const wire::Memory to = begin(neighbour, bytes);
  attacker.link().write(transfer(to, bytes, std::byte{'a'}));
  EXPECT_TRUE(attacker.is_thrown_out());
  EXPECT_THAT(attacker.end()->what, testing::HasSubstr("refused our access")) << "its WRITE landed";

  neighbour.link().write(transfer(to, bytes, std::byte{'n'}));
  neighbour.run_until([&] { return hub->get("grad/1").has_value() || neighbour.end(); });
  EXPECT_TRUE(hub->get("grad/1"));
}

// One lands in the record table of the connection, the other in memory of its own.
INSTANTIATE_TEST_SUITE_P(Sizes, TensorStranger, testing::Values(8'000, 80'000));

}  // namespace
}  // namespace weir::tensor
