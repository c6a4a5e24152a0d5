// Programs that work on a NIC that does everything at once, each wrong in one way, and their right
// neighbours.
//
//   weak_programs NAME wrong|right
//
// They check their own results: exit status 1 when they are not what they should be.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "tests/check/pair.hpp"

namespace weir::weak_test {
namespace {

using check_test::Pair;
using check_test::piece;
using check_test::post;
using check_test::post_receive;
using check_test::Request;
using check_test::wait_for;
using check_test::write_to;

enum class Side : bool { right, wrong };

constexpr int rounds = 200;
constexpr std::size_t source = 0, target = 1024, row = 2048, message = 256;

Request read_from(const ibv_mr* region, std::size_t offset, unsigned flags = 0) {
  Request request = write_to(region, offset, flags);
  request.opcode = IBV_WR_RDMA_READ;
  return request;
}

void fill(Pair& two, std::size_t at, int value) { std::memset(two.memory + at, value, message); }
bool holds(const Pair& two, std::size_t at, int value) {
  return std::all_of(two.memory + at, two.memory + at + message,
                     [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
}

// Runs `round` until it returns false.
template <class Round>
int in_rounds(const Round& round) {
  const auto two = std::make_unique<Pair>();
  for (int i = 1; i <= rounds; ++i)
    if (!round(*two, i % 100 + 1)) return 1;
  return 0;
}

// The buffer is used again before the completion.
int reuse(Side side) {
  return in_rounds([&](Pair& two, int value) {
    fill(two, source, value);
    post(two.qp, write_to(two.region, target), piece(two.region, source, message));
    if (side == Side::wrong) fill(two, source, 200);
    wait_for(two.cq);
    fill(two, source, 200);
    return holds(two, target, value);
  });
}

// The target is looked at without a completion.
int early_look(Side side) {
  return in_rounds([&](Pair& two, int value) {
    fill(two, source, value);
    post(two.qp, write_to(two.region, target), piece(two.region, source, message));
    const bool there = holds(two, target, value);
    wait_for(two.cq);
    return side == Side::wrong ? there : holds(two, target, value);
  });
}

// The last byte of a WRITE is waited for; right: a byte of a second WRITE.
int last_byte(Side side) {
  return in_rounds([&](Pair& two, int value) {
    fill(two, target, 0);
    fill(two, source, value);
    two.memory[row] = std::byte{0};
    post(two.qp, write_to(two.region, target, 0), piece(two.region, source, message));
    post(two.qp, write_to(two.region, row), piece(two.region, source, 1));
    const std::atomic_ref<std::byte> flag(two.memory[side == Side::wrong ? target + message - 1 : row]);
    while (flag.load(std::memory_order_acquire) == std::byte{0}) std::this_thread::yield();
    const bool whole = holds(two, target, value);
    wait_for(two.cq);
    return whole;
  });
}

// What a READ fetches is passed on.
int relay(Side side) {
  return in_rounds([&](Pair& two, int value) {
    fill(two, row, value);
    fill(two, source, 0);
    post(two.qp, read_from(two.region, row), piece(two.region, source, message));
    const unsigned fence = side == Side::wrong ? 0 : unsigned{IBV_SEND_FENCE};
    post(two.qp, write_to(two.region, target, IBV_SEND_SIGNALED | fence), piece(two.region, source, message));
    wait_for(two.cq);
    return holds(two, target, value);
  });
}

// A READ of a value, and a WRITE of the next one behind it.
int read_then_write(Side side) {
  return in_rounds([&](Pair& two, int value) {
    fill(two, target, value);
    fill(two, row, 200);
    post(two.qp, read_from(two.region, target, IBV_SEND_SIGNALED), piece(two.region, source, message));
    if (side == Side::right) wait_for(two.cq);
    post(two.qp, write_to(two.region, target), piece(two.region, row, message));
    wait_for(two.cq);
    if (side == Side::wrong) wait_for(two.cq);
    return holds(two, source, value);
  });
}

// Which request failed is found out by the opcode; right: by the wr_id.
int failed_fields(Side side) {
  const auto two = std::make_unique<Pair>();
  post(two->qp, write_to(two->region, Pair::bytes), piece(two->region, source, 64));
  ibv_wc wc{};
  while (ibv_poll_cq(two->cq, 1, &wc) == 0) continue;
  if (wc.status == IBV_WC_SUCCESS) return 1;
  return side == Side::wrong ? wc.opcode != IBV_WC_RDMA_WRITE : wc.wr_id != 7;
}

// The CQ is armed behind the last poll; right: before it.
int asleep(Side side) {
  const auto two = std::make_unique<Pair>(check_test::PairOptions{.with_channel = true});
  ibv_req_notify_cq(two->cq, 0);
  int open = 0, done = 0;
  for (int posted = 0; done < rounds;) {
    for (; open < 4 && posted < rounds; ++open, ++posted)
      post(two->qp, write_to(two->region, target), piece(two->region, source, message));
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(two->channel, &cq, &context) != 0) return 1;
    ibv_ack_cq_events(cq, 1);
    const auto poll = [&] {
      for (ibv_wc wc{}; ibv_poll_cq(two->cq, 1, &wc) == 1; ++done) --open;
    };
    if (side == Side::right) ibv_req_notify_cq(two->cq, 0);
    poll();
    if (side == Side::wrong) ibv_req_notify_cq(two->cq, 0);
  }
  return 0;
}

struct Row {
  std::string_view name;
  int (*program)(Side);
};
constexpr Row programs[] = {
    {"reuse", reuse},  {"early_look", early_look},           {"last_byte", last_byte},
    {"relay", relay},  {"read_then_write", read_then_write}, {"failed_fields", failed_fields},
    {"asleep", asleep}};

}  // namespace
}  // namespace weir::weak_test

using namespace weir::weak_test;

int main(int count, char** words) {
  if (count != 3) return 2;
  for (const Row& row : programs)
    if (row.name == words[1])
      return row.program(words[2] == std::string_view("wrong") ? Side::wrong : Side::right);
  return 2;
}
