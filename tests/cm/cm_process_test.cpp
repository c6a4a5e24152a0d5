// Connections between processes, one of which is killed at the worst moment.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <future>
#include <random>

#include "link/same_host.hpp"
#include "tests/cm/cm_fixture.hpp"
#include "tests/piped_child.hpp"

namespace weir::cm {
namespace {

using namespace std::chrono_literals;

// cm_peer, running; killed when destroyed.
class Peer {
 public:
  explicit Peer(std::vector<std::string> arguments) : child_(with_program(std::move(arguments))) {}

  std::string line() { return child_.line(); }
  void wait_for(const std::string& wanted) {
    for (std::string said = line(); said != wanted; said = line()) {
      ASSERT_FALSE(said.empty()) << "ended before it said: " << wanted;
    }
  }
  std::uint16_t port() {
    const std::string said = line();
    EXPECT_EQ(said.substr(0, 5), "port ");
    return static_cast<std::uint16_t>(std::atoi(said.c_str() + 5));
  }
  void kill() { child_.kill(); }
  int finish() {
    child_.end_input();
    const int status = child_.wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static std::vector<std::string> with_program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CM_PEER);
    return arguments;
  }
  test::PipedChild child_;
};

class CmProcesses : public testing::Test {
 protected:
  IdRef connect_to(std::uint16_t port) {
    IdRef client = make_id(events_);
    resolve(client, events_, port);
    make_qp(client);
    EXPECT_EQ(rdma_connect(client.get(), nullptr), 0) << std::strerror(errno);
    return client;
  }
  Events events_;
};

TEST_F(CmProcesses, connect_and_part) {
  Peer server({"listen"});
  IdRef client = connect_to(server.port());
  events_.expect(RDMA_CM_EVENT_ESTABLISHED);
  server.wait_for("RDMA_CM_EVENT_ESTABLISHED 0");
  EXPECT_EQ(rdma_disconnect(client.get()), 0);
  events_.expect(RDMA_CM_EVENT_DISCONNECTED);
  server.wait_for("RDMA_CM_EVENT_DISCONNECTED 0");
  EXPECT_EQ(server.finish(), 0);
}

TEST_F(CmProcesses, the_partner_of_a_killed_server_is_disconnected) {
  Peer server({"listen"});
  const IdRef client = connect_to(server.port());
  events_.expect(RDMA_CM_EVENT_ESTABLISHED);
  server.kill();
  events_.expect(RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmProcesses, the_partner_of_a_killed_client_is_disconnected) {
  const IdRef listener = make_listener(events_);
  Peer client({"connect", std::to_string(port_of(listener))});
  const IdRef server(events_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  make_qp(server);
  ASSERT_EQ(rdma_accept(server.get(), nullptr), 0) << std::strerror(errno);
  events_.expect(RDMA_CM_EVENT_ESTABLISHED);
  client.kill();
  events_.expect(RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmProcesses, a_server_killed_before_it_answers_is_a_rejection) {
  Peer server({"hold"});
  const IdRef client = connect_to(server.port());
  server.wait_for("RDMA_CM_EVENT_CONNECT_REQUEST 0");
  server.kill();
  const auto event = events_.next();
  EXPECT_STREQ(rdma_event_str(event->event), "RDMA_CM_EVENT_REJECTED");
}

TEST_F(CmProcesses, a_client_killed_before_it_is_answered_leaves_a_request_that_cannot_be_accepted) {
  const IdRef listener = make_listener(events_);
  Peer client({"connect", std::to_string(port_of(listener))});
  const IdRef server(events_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  client.kill();
  make_qp(server);
  if (rdma_accept(server.get(), nullptr) == 0)
    events_.expect(RDMA_CM_EVENT_REJECTED, 28);  // its end was not known yet
  else
    EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(events_.pending()) << "an event of an identifier that was not accepted";
}

TEST_F(CmProcesses, the_port_of_a_killed_listener_refuses_and_can_be_bound) {
  Peer server({"listen"});
  const auto port = server.port();
  auto same = loopback(port);
  const IdRef early = make_id(events_);
  EXPECT_EQ(rdma_bind_addr(early.get(), as_address(same)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  server.kill();
  const IdRef client = connect_to(port);
  events_.expect(RDMA_CM_EVENT_REJECTED, 8);
  EXPECT_EQ(rdma_bind_addr(early.get(), as_address(same)), 0) << std::strerror(errno);
}

TEST_F(CmProcesses, garbage_from_another_process_disturbs_no_connection) {
  const IdRef listener = make_listener(events_);
  const auto directory = link::SameHostLink::default_directory(std::getenv("WEIR_RUNTIME_DIR"));
  auto link = link::SameHostLink::attach({.directory = directory});
  ASSERT_TRUE(link) << link.error().what;
  // Ours is the only other slot there.
  link::NeighbourPtr victim;
  for (link::Slot slot = 1; slot < link::max_slots && !victim; ++slot) {
    if (slot == (*link)->slot()) continue;
    if (auto found = (*link)->connect(slot, 5s)) victim = *found;
  }
  ASSERT_TRUE(victim);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> body(random() % 300);
    for (auto& byte : body) byte = static_cast<std::byte>(random());
    if (body.size() > 2 && i % 2 == 0) {
      body[0] = std::byte{1};                              // the right version
      body[1] = static_cast<std::byte>(1 + random() % 9);  // and a type
    }
    // A full queue is no failure here: the victim may be slower than we.
    (void)victim->send(link::kind::cm_first, body);
  }
  const IdRef client = connect_to(port_of(listener));
  const IdRef server(events_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  make_qp(server);
  ASSERT_EQ(rdma_accept(server.get(), nullptr), 0);
  events_.next();
  events_.next();
  EXPECT_FALSE(events_.pending());
}

}  // namespace
}  // namespace weir::cm
