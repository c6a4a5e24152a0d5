// Threads that are cancelled in a call of librdmacm: cancellation ends only a wait for an event, and never
// leaves a connection between two states.
#include "tests/cancelled_thread.hpp"
#include "tests/cm/cm_fixture.hpp"

namespace weir::cm {
namespace {

void expect_whole(const char* name, const std::function<int()>& call) {
  SCOPED_TRACE(name);
  EXPECT_FALSE(test::is_ended_in([&] { EXPECT_EQ(call(), 0) << std::strerror(errno); }));
}

TEST(RdmaCmCancelled, a_connection_is_made_and_ended_whole) {
  Events server, client;
  const IdRef listener = make_id(server), active = make_id(client);
  auto here = loopback(0);
  expect_whole("bind", [&] { return rdma_bind_addr(listener.get(), as_address(here)); });
  expect_whole("listen", [&] { return rdma_listen(listener.get(), 4); });
  auto to = loopback(port_of(listener));
  expect_whole("address", [&] { return rdma_resolve_addr(active.get(), nullptr, as_address(to), 1000); });
  client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  expect_whole("route", [&] { return rdma_resolve_route(active.get(), 1000); });
  client.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_qp(active);
  auto param = parameters();
  expect_whole("connect", [&] { return rdma_connect(active.get(), &param); });
  IdRef passive(server.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  make_qp(passive);
  expect_whole("accept", [&] { return rdma_accept(passive.get(), &param); });
  client.expect(RDMA_CM_EVENT_ESTABLISHED);
  server.expect(RDMA_CM_EVENT_ESTABLISHED);
  expect_whole("disconnect", [&] { return rdma_disconnect(active.get()); });
  server.expect(RDMA_CM_EVENT_DISCONNECTED);
  auto disconnected = client.expect(RDMA_CM_EVENT_DISCONNECTED);
  expect_whole("acknowledge", [&] { return rdma_ack_cm_event(disconnected.release()); });
}

TEST(RdmaCmCancelled, an_identifier_goes_whole_and_leaves_its_port) {
  Events events;
  rdma_cm_id* id = nullptr;
  expect_whole("create", [&] { return rdma_create_id(events.get(), &id, nullptr, RDMA_PS_TCP); });
  auto here = loopback(0);
  ASSERT_EQ(rdma_bind_addr(id, as_address(here)), 0);
  here = loopback(ntohs(rdma_get_src_port(id)));
  expect_whole("destroy", [&] { return rdma_destroy_id(id); });
  const IdRef next = make_id(events);
  EXPECT_EQ(rdma_bind_addr(next.get(), as_address(here)), 0) << std::strerror(errno);
}

TEST(RdmaCmCancelled, waiting_for_an_event_ends_the_thread) {
  Events events;
  rdma_cm_event* event = nullptr;
  EXPECT_TRUE(test::is_ended_in([&] { rdma_get_cm_event(events.get(), &event); }));
  const IdRef listener = make_listener(events), active = make_id(events);
  resolve(active, events, port_of(listener));  // the channel is as good as before
}

}  // namespace
}  // namespace weir::cm
