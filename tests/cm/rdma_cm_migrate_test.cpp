// rdma_migrate_id: what moves to the new channel.
#include <future>

#include "tests/cm/cm_fixture.hpp"

namespace weir::cm {
namespace {

class Migrating : public testing::Test {
 protected:
  Events server_, client_;
};

TEST_F(Migrating, takes_queued_events_to_the_new_channel) {
  const IdRef id = make_id(client_);
  auto to = loopback(1);
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, as_address(to), 100), 0);
  ASSERT_EQ(rdma_migrate_id(id.get(), server_.get()), 0);
  EXPECT_EQ(id->channel, server_.get());
  EXPECT_FALSE(client_.pending());
  server_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
}

// The thread that migrates may also read the new channel.
TEST_F(Migrating, waits_for_events_taken_before_it_and_for_none_that_come_to_the_new_channel) {
  Events left;
  const IdRef listener = make_listener(left);
  const auto ask = [&] {
    IdRef client = make_id(client_);
    resolve(client, client_, port_of(listener));
    EXPECT_EQ(rdma_connect(client.get(), nullptr), 0);
    return client;
  };
  const IdRef one = ask();
  auto taken = left.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const IdRef first(taken->id);
  auto migrated =
      std::async(std::launch::async, [&] { return rdma_migrate_id(listener.get(), server_.get()); });
  const IdRef two = ask();
  const auto moved_or_new = server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const IdRef second(moved_or_new->id);
  const IdRef three = ask();
  const auto surely_new = server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const IdRef third(surely_new->id);
  EXPECT_EQ(migrated.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  taken.reset();
  EXPECT_EQ(migrated.wait_for(std::chrono::milliseconds(patience_ms)), std::future_status::ready);
}

// The channel that a listener leaves may be gone when its requests are answered.
TEST_F(Migrating, a_listener_takes_the_requests_it_has_to_the_new_channel) {
  auto left = std::make_unique<Events>();
  const IdRef listener = make_listener(*left);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  auto asks = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  ASSERT_TRUE(left->pending(patience_ms));
  ASSERT_EQ(rdma_migrate_id(listener.get(), server_.get()), 0);
  EXPECT_EQ(listener->channel, server_.get());
  left.reset();
  auto request = server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const IdRef server(request->id);
  request.reset();
  EXPECT_EQ(server->channel, server_.get());
  make_qp(server);
  ASSERT_EQ(rdma_accept(server.get(), &asks), 0) << std::strerror(errno);
  client_.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(server_.expect(RDMA_CM_EVENT_ESTABLISHED)->id, server.get());
}

// One that was taken back before anybody saw it, too.
TEST_F(Migrating, a_listener_takes_along_requests_that_were_given_up) {
  Events left;
  const IdRef listener = make_listener(left);
  IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  auto asks = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  ASSERT_TRUE(left.pending(patience_ms));
  client.reset();
  ASSERT_EQ(rdma_migrate_id(listener.get(), server_.get()), 0);
  auto request = server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const IdRef server(request->id);
  request.reset();
  EXPECT_FALSE(server_.pending());
  EXPECT_FALSE(left.pending());
}

}  // namespace
}  // namespace weir::cm
