// A peer whose process is stopped inside a WRITE to us: we do not wait for it, and the memory that it may
// still write stays in place.
//
// Such a process leaves one odd word behind, so the test writes that word into this process's own segment
// instead of stopping a process at the right instruction.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "rdma/stream.hpp"
#include "rnic/memory/segment_layout.hpp"
#include "tests/rdma/raw_peer.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::RawPeer;
using testing_support::StreamTest;

rnic::SegmentHeader* own_segment() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights) != 3) continue;
    if (std::string(rights) != "rw-s" || to - from < rnic::segment_rings_offset) continue;
    auto* header = reinterpret_cast<rnic::SegmentHeader*>(from);  // NOLINT(performance-no-int-to-ptr)
    if (header->magic == rnic::segment_magic) return header;
  }
  return nullptr;
}

class StoppedPeer : public StreamTest {
 protected:
  void SetUp() override {
    StreamTest::SetUp();
    acceptor.emplace(listen({.receive_buffer_bytes = 8192}));
    peer.emplace([this] { io.poll(); });
    acceptor->async_accept([this](std::error_code failed, Stream stream) {
      ASSERT_FALSE(failed);
      victim.emplace(std::move(stream));
    });
    peer->connect(acceptor->local_endpoint());
    run_until([&] { return victim.has_value(); });
    announced = peer->announcement();
    rnic::SegmentHeader* const segment = own_segment();
    if (segment == nullptr) GTEST_SKIP() << "not on Weir's NIC";
    for (rnic::QpContext& each : segment->qps)
      if (each.remote_qpn == peer->qp_num()) context = &each;
    ASSERT_NE(context, nullptr);
  }
  void TearDown() override {
    if (context != nullptr && (context->hazard & 1) != 0) ++context->hazard;
    victim.reset();
    acceptor.reset();
    peer.reset();
  }
  void stop_peer_inside_a_write() {
    context->reaches = announced.rkey;
    context->hazard |= 1;
  }
  void let_peer_go_on() { ++context->hazard; }

  std::optional<Stream> victim;
  std::optional<Acceptor> acceptor;
  std::optional<RawPeer> peer;
  RegisterXferMemory announced{};
  rnic::QpContext* context = nullptr;
};

TEST_F(StoppedPeer, others_connect_and_disconnect_meanwhile) {
  stop_peer_inside_a_write();
  const std::uint32_t before = engine->stats().connections;
  {
    auto [client, server] = connect_through(*acceptor, {});
  }
  run_until([&] { return engine->stats().connections == before; });
  EXPECT_EQ(engine->stats().leaving, 0u);
}

TEST_F(StoppedPeer, its_own_connection_ends_at_once_and_its_memory_stays_until_it_has_left) {
  stop_peer_inside_a_write();
  const std::size_t held = engine->stats().pool.used_bytes;
  const auto begun = std::chrono::steady_clock::now();
  victim.reset();
  run_until([&] { return engine->stats().leaving == 1; });
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1)) << "the loop waited for it";
  for (int i = 0; i < 100; ++i) io.poll();
  EXPECT_EQ(engine->stats().pool.used_bytes, held) << "it may yet write there";
  {
    auto [client, server] = connect_through(*acceptor, {});
  }
  let_peer_go_on();
  run_until([&] { return engine->stats().leaving == 0 && engine->stats().connections == 0; });
  EXPECT_EQ(engine->stats().pool.used_bytes, 0u);
}

}  // namespace
}  // namespace weir::rdma
