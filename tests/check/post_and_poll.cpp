// Posts requests of 64 bytes and polls their completions, for the instruction counts of instructions_test.py.
//
//   post_and_poll           each function measure_OPERATION runs `rounds` times over, after as many that warm
//   up
#include <cstdlib>

#include "tests/check/pair.hpp"

namespace weir::check_test {
namespace {

constexpr int rounds = 1000;
constexpr std::size_t message_bytes = 64;

void poll_one(ibv_cq* cq) {
  ibv_wc wc{};
  if (ibv_poll_cq(cq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS) std::_Exit(3);
}

void post_one(const Pair& pair, ibv_wr_opcode opcode) {
  const Request request{.opcode = opcode,
                        .remote_addr = reinterpret_cast<std::uint64_t>(pair.memory + 1024),
                        .rkey = pair.region->rkey};
  if (post(pair.qp, request, piece(pair.region, 0, message_bytes)) != 0) std::_Exit(3);
}

}  // namespace
}  // namespace weir::check_test

using namespace weir::check_test;

// What callgrind counts is inside functions of these names (--toggle-collect).
extern "C" {
[[gnu::noinline]] void measure_write(const Pair& pair) {
  for (int i = 0; i < rounds; ++i) {
    post_one(pair, IBV_WR_RDMA_WRITE);
    poll_one(pair.cq);
  }
}
[[gnu::noinline]] void measure_read(const Pair& pair) {
  for (int i = 0; i < rounds; ++i) {
    post_one(pair, IBV_WR_RDMA_READ);
    poll_one(pair.cq);
  }
}
[[gnu::noinline]] void measure_send(const Pair& pair) {
  for (int i = 0; i < rounds; ++i) {
    if (post_receive(pair.target, piece(pair.region, 2048, message_bytes)) != 0) std::_Exit(3);
    post_one(pair, IBV_WR_SEND);
    poll_one(pair.cq);
    poll_one(pair.target_cq);
  }
}
}

int main() {
  const Pair pair;
  for (const auto measure : {measure_write, measure_read, measure_send}) {
    measure(pair);
    measure(pair);
  }
}
