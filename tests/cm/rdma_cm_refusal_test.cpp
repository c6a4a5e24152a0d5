// What rdma_cm refuses: rejections with reasons, addresses that are not available, calls out of order.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "tests/cm/cm_fixture.hpp"
#include "tests/descriptors_below.hpp"

namespace weir::cm {
namespace {

class RdmaCmRefuses : public testing::Test {
 protected:
  Events server_, client_;
};

TEST_F(RdmaCmRefuses, nobody_listens_is_a_rejection_with_invalid_service_id) {
  std::uint16_t port;
  {
    const IdRef listener = make_listener(server_);
    port = port_of(listener);
  }
  const IdRef client = make_id(client_);
  resolve(client, client_, port);
  make_qp(client);
  auto asks = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  EXPECT_EQ(client_.expect(RDMA_CM_EVENT_REJECTED, 8)->param.conn.private_data_len, 148);
}

TEST_F(RdmaCmRefuses, a_bound_address_that_does_not_listen_rejects_too) {
  const IdRef bound = make_id(server_);
  auto any = loopback(0);
  ASSERT_EQ(rdma_bind_addr(bound.get(), as_address(any)), 0);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(bound));
  make_qp(client);
  auto asks = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  client_.expect(RDMA_CM_EVENT_REJECTED, 8);
}

// Not a listener that cannot be found.
TEST_F(RdmaCmRefuses, listening_that_cannot_be_made_known_and_may_be_tried_again) {
  const IdRef listener = make_id(server_);
  auto any = loopback(0);
  ASSERT_EQ(rdma_bind_addr(listener.get(), as_address(any)), 0);
  {
    const test::DescriptorsBelow none(3);
    EXPECT_EQ(rdma_listen(listener.get(), 8), -1);
    EXPECT_EQ(errno, EMFILE);
  }
  ASSERT_EQ(rdma_listen(listener.get(), 8), 0);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
  const IdRef server(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
}

TEST_F(RdmaCmRefuses, a_rejection_brings_its_private_data) {
  const IdRef listener = make_listener(server_);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  auto asks = parameters();
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  const IdRef server(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  ASSERT_EQ(rdma_reject(server.get(), "go away", 7), 0);
  const auto rejected = client_.expect(RDMA_CM_EVENT_REJECTED, 28);
  EXPECT_EQ(rejected->param.conn.private_data_len, 148);
  EXPECT_EQ(std::string(static_cast<const char*>(rejected->param.conn.private_data), 8),
            std::string("go away\0", 8));
}

TEST_F(RdmaCmRefuses, destroying_a_request_unanswered_rejects_it) {
  const IdRef listener = make_listener(server_);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
  IdRef(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id).reset();
  client_.expect(RDMA_CM_EVENT_REJECTED, 28);
}

TEST_F(RdmaCmRefuses, destroying_a_listener_rejects_what_it_has_not_been_asked_for) {
  IdRef listener = make_listener(server_);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
  ASSERT_TRUE(server_.pending(patience_ms));
  listener.reset();
  client_.expect(RDMA_CM_EVENT_REJECTED, 28);
  EXPECT_FALSE(server_.pending());
}

TEST_F(RdmaCmRefuses,
       an_identifier_that_was_not_accepted_has_no_events_and_cannot_be_accepted_once_given_up) {
  const IdRef listener = make_listener(server_);
  IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
  const IdRef server(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  client.reset();
  // What comes behind it has come, so it has come.
  const IdRef later = make_id(client_);
  resolve(later, client_, port_of(listener));
  make_qp(later);
  ASSERT_EQ(rdma_connect(later.get(), nullptr), 0);
  const IdRef its(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  EXPECT_FALSE(server_.pending());
  EXPECT_EQ(rdma_accept(server.get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RdmaCmRefuses, the_backlog_bounds_what_waits) {
  const IdRef listener = make_listener(server_, RDMA_PS_TCP, 2);
  std::vector<IdRef> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(make_id(client_));
    resolve(clients.back(), client_, port_of(listener));
    make_qp(clients.back());
    ASSERT_EQ(rdma_connect(clients.back().get(), nullptr), 0);
  }
  EXPECT_EQ(client_.expect(RDMA_CM_EVENT_REJECTED, 28)->id, clients[2].get());
  for (int i = 0; i < 2; ++i) IdRef(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id).reset();
  for (int i = 0; i < 2; ++i) client_.expect(RDMA_CM_EVENT_REJECTED, 28);
}

TEST_F(RdmaCmRefuses, private_data_that_does_not_fit_is_refused) {
  const IdRef listener = make_listener(server_);
  const IdRef client = make_id(client_);
  resolve(client, client_, port_of(listener));
  make_qp(client);
  const std::string fits(56, 'x'), too_long(57, 'x');
  auto asks = parameters(too_long);
  EXPECT_EQ(rdma_connect(client.get(), &asks), -1);
  EXPECT_EQ(errno, EINVAL);
  asks = parameters(fits);
  ASSERT_EQ(rdma_connect(client.get(), &asks), 0);
  const IdRef server(server_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  make_qp(server);
  const std::string too_long_an_answer(197, 'y'), too_long_a_refusal(149, 'z');
  auto answers = parameters(too_long_an_answer);
  EXPECT_EQ(rdma_accept(server.get(), &answers), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_reject(server.get(), too_long_a_refusal.data(), 149), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RdmaCmRefuses, an_address_in_use_is_told) {
  const IdRef first = make_listener(server_);
  const IdRef second = make_id(client_);
  auto same = loopback(port_of(first));
  EXPECT_EQ(rdma_bind_addr(second.get(), as_address(same)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
}

// A process of another user that listens under a name in the network namespace, until this ends.
class AnotherUsersListener {
 public:
  explicit AnotherUsersListener(const std::string& name) {
    int ready[2], end[2];
    EXPECT_EQ(::pipe(ready), 0);
    EXPECT_EQ(::pipe(end), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::close(end[1]);
      const bool listens = listen_as_nobody(name);
      char byte = listens ? 'y' : 'n';
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(end[0], &byte, 1);
      ::_exit(0);
    }
    char answer = 'n';
    listens_ = ::read(ready[0], &answer, 1) == 1 && answer == 'y';
    for (const int fd : {ready[0], ready[1], end[0]}) ::close(fd);
    hold_ = end[1];
  }
  ~AnotherUsersListener() {
    ::close(hold_);
    ::waitpid(child_, nullptr, 0);
  }
  bool listens() const { return listens_; }

 private:
  static bool listen_as_nobody(const std::string& name) {
    if (::setresuid(65534, 65534, 65534) != 0) return false;
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return ::bind(socket, reinterpret_cast<sockaddr*>(&address), bytes) == 0 && ::listen(socket, 8) == 0;
  }

  pid_t child_;
  int hold_ = -1;
  bool listens_ = false;
};

TEST_F(RdmaCmRefuses, to_listen_where_a_program_of_another_user_does_and_says_what_helps) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const IdRef id = make_id(server_);
  auto any_port = loopback(0);
  ASSERT_EQ(rdma_bind_addr(id.get(), as_address(any_port)), 0);
  {
    const AnotherUsersListener other("weir-port-tcp-" + std::to_string(port_of(id)) + "-127.0.0.1");
    ASSERT_TRUE(other.listens());
    testing::internal::CaptureStderr();
    EXPECT_EQ(rdma_listen(id.get(), 1), -1);
    EXPECT_EQ(errno, EADDRINUSE);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::AllOf(testing::HasSubstr("user 65534"), testing::HasSubstr("another port"),
                               testing::HasSubstr("WEIR_WIRE=0")));
  }
  EXPECT_EQ(rdma_listen(id.get(), 1), 0) << "it has ended: " << std::strerror(errno);
}

TEST_F(RdmaCmRefuses, an_address_of_another_host_cannot_be_bound_nor_reached_without_packets) {
  ::setenv("WEIR_WIRE", "0", 1);
  auto elsewhere = loopback(0, "198.51.100.7");
  const IdRef bound = make_id(server_);
  EXPECT_EQ(rdma_bind_addr(bound.get(), as_address(elsewhere)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  const IdRef client = make_id(client_);
  ASSERT_EQ(rdma_resolve_addr(client.get(), nullptr, as_address(elsewhere), 100), 0);
  const auto event = client_.next();
  EXPECT_EQ(event->event, RDMA_CM_EVENT_ADDR_ERROR);
  EXPECT_LT(event->status, 0);
  ::unsetenv("WEIR_WIRE");
}

// As librdmacm answers before it asks anybody.
TEST_F(RdmaCmRefuses, an_address_of_no_family_that_it_knows_is_invalid) {
  const IdRef id = make_id(client_);
  auto good = loopback(7);
  sockaddr other{};
  other.sa_family = AF_UNIX;
  const auto invalid = [](int result) { return result == -1 && errno == EINVAL; };
  for (sockaddr* bad : {&other, static_cast<sockaddr*>(nullptr)}) {
    EXPECT_TRUE(invalid(rdma_bind_addr(id.get(), bad)));
    EXPECT_TRUE(invalid(rdma_resolve_addr(id.get(), nullptr, bad, 100)));
  }
  EXPECT_TRUE(invalid(rdma_resolve_addr(id.get(), &other, as_address(good), 100)));
  EXPECT_FALSE(client_.pending());
}

TEST_F(RdmaCmRefuses, an_identifier_that_waits_for_its_events_to_be_moved_to_nothing) {
  rdma_cm_id* made = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &made, nullptr, RDMA_PS_TCP), 0);
  const IdRef id(made);
  rdma_event_channel* const own = id->channel;
  EXPECT_EQ(rdma_migrate_id(id.get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(id->channel, own);
}

TEST_F(RdmaCmRefuses, calls_out_of_order_are_refused) {
  const IdRef id = make_id(client_);
  EXPECT_EQ(rdma_resolve_route(id.get(), 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_connect(id.get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_accept(id.get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_reject(id.get(), nullptr, 0), -1);
  EXPECT_EQ(rdma_disconnect(id.get()), -1);
  EXPECT_EQ(rdma_establish(id.get()), -1);
}

}  // namespace
}  // namespace weir::cm
