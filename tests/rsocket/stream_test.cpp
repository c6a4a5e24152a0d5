// Stream rsockets: connecting, names, and bytes in both directions. stream_end_test.cpp tests their end.
#include <gmock/gmock.h>
#include <sys/uio.h>

#include <climits>
#include <future>

#include "tests/rsocket/fixture.hpp"

namespace weir::rsocket {
namespace {

struct Refused {
  const char* what;
  int domain, type, protocol, error;
};
class RsocketRefused : public testing::TestWithParam<Refused> {};
TEST_P(RsocketRefused, says_why_as_socket_does) {
  const Refused& row = GetParam();
  EXPECT_EQ(::rsocket(row.domain, row.type, row.protocol), -1) << row.what;
  EXPECT_EQ(errno, row.error) << row.what;
}
INSTANTIATE_TEST_SUITE_P(Each, RsocketRefused,
                         testing::Values(Refused{"family", AF_UNIX, SOCK_STREAM, 0, EAFNOSUPPORT},
                                         Refused{"type", AF_INET, SOCK_RAW, 0, EINVAL},
                                         Refused{"protocol of the other type", AF_INET, SOCK_STREAM,
                                                 IPPROTO_UDP, EPROTONOSUPPORT}));

TEST(Rsocket, a_number_that_is_none_is_a_bad_descriptor) {
  char byte = 0;
  sockaddr_in address = loopback(1);
  socklen_t size = sizeof address;
  int value = 0;
  socklen_t value_size = sizeof value;
  const std::pair<const char*, std::function<ssize_t()>> calls[] = {
      {"rbind", [&] { return ::rbind(0, as_address(address), size); }},
      {"rlisten", [&] { return ::rlisten(0, 1); }},
      {"raccept", [&] { return ::raccept(0, nullptr, nullptr); }},
      {"rconnect", [&] { return ::rconnect(0, as_address(address), size); }},
      {"rshutdown", [&] { return ::rshutdown(0, SHUT_WR); }},
      {"rclose", [&] { return ::rclose(0); }},
      {"rsend", [&] { return ::rsend(0, &byte, 1, 0); }},
      {"rrecv", [&] { return ::rrecv(0, &byte, 1, 0); }},
      {"rgetsockname", [&] { return ::rgetsockname(0, as_address(address), &size); }},
      {"rgetpeername", [&] { return ::rgetpeername(0, as_address(address), &size); }},
      {"rsetsockopt", [&] { return ::rsetsockopt(0, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value); }},
      {"rgetsockopt", [&] { return ::rgetsockopt(0, SOL_SOCKET, SO_KEEPALIVE, &value, &value_size); }},
      {"rfcntl", [&] { return ::rfcntl(0, F_GETFL); }},
      {"riomap", [&] { return ::riomap(0, &byte, 1, PROT_NONE, 0, 0); }},
      {"riounmap", [&] { return ::riounmap(0, &byte, 1); }},
      {"riowrite", [&] { return static_cast<ssize_t>(::riowrite(0, &byte, 1, 0, 0)); }},
  };
  for (const auto& [name, call] : calls) {
    errno = 0;
    EXPECT_EQ(call(), -1) << name;
    EXPECT_EQ(errno, EBADF) << name;
  }
}

TEST(Stream, carries_bytes_both_ways) {
  Pair pair;
  EXPECT_EQ(send(pair.client, "there"), 5);
  EXPECT_EQ(receive(pair.server), "there");
  EXPECT_EQ(send(pair.server, "and back"), 8);
  EXPECT_EQ(receive(pair.client), "and back");
}

TEST(Stream, connects_before_anybody_accepts) {
  Rsocket listener = listening();
  Rsocket client = stream();
  ASSERT_EQ(connect(client, name_of(listener)), 0) << std::strerror(errno);
  EXPECT_EQ(send(client, "early"), 5);
  Rsocket server(::raccept(listener.get(), nullptr, nullptr));
  EXPECT_EQ(receive(server), "early");
}

TEST(Stream, both_ends_know_each_others_names) {
  Rsocket listener = listening();
  Rsocket client = stream();
  ASSERT_EQ(connect(client, name_of(listener)), 0);
  sockaddr_in accepted{};
  socklen_t size = sizeof accepted;
  Rsocket server(::raccept(listener.get(), as_address(accepted), &size));
  sockaddr_in seen_by_client{}, seen_by_server{};
  ASSERT_EQ(::rgetpeername(client.get(), as_address(seen_by_client), &size), 0);
  ASSERT_EQ(::rgetpeername(server.get(), as_address(seen_by_server), &size), 0);
  EXPECT_EQ(seen_by_client.sin_port, name_of(listener).sin_port);
  EXPECT_EQ(seen_by_server.sin_port, name_of(client).sin_port);
  EXPECT_EQ(accepted.sin_port, name_of(client).sin_port);
  EXPECT_EQ(accepted.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

TEST(Stream, an_ipv6_listener_sees_ipv4_peers_as_mapped) {
  Rsocket listener(::rsocket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  ASSERT_EQ(::rbind(listener.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0)
      << std::strerror(errno);
  ASSERT_EQ(::rlisten(listener.get(), 1), 0);
  socklen_t size = sizeof any;
  ASSERT_EQ(::rgetsockname(listener.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
  Rsocket client = stream();
  ASSERT_EQ(connect(client, loopback(ntohs(any.sin6_port))), 0) << std::strerror(errno);
  sockaddr_in6 peer{};
  size = sizeof peer;
  Rsocket server(::raccept(listener.get(), reinterpret_cast<sockaddr*>(&peer), &size));
  EXPECT_EQ(peer.sin6_family, AF_INET6);
  EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr));
  EXPECT_EQ(size, sizeof peer);
}

TEST(Stream, nobody_listens_is_a_refusal_and_the_socket_can_try_again) {
  Rsocket client = stream();
  sockaddr_in nowhere;
  {
    Rsocket gone = listening();
    nowhere = name_of(gone);
  }
  EXPECT_EQ(connect(client, nowhere), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  Rsocket listener = listening();
  EXPECT_EQ(connect(client, name_of(listener)), 0) << std::strerror(errno);
  EXPECT_EQ(connect(client, name_of(listener)), -1);
  EXPECT_EQ(errno, EISCONN);
}

TEST(Stream, not_connected_can_neither_send_nor_receive) {
  Rsocket lonely = stream();
  EXPECT_EQ(send(lonely, "x"), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(receive(lonely), words(ENOTCONN));
  EXPECT_EQ(::rshutdown(lonely.get(), SHUT_WR), -1);
  EXPECT_EQ(errno, ENOTCONN);
}

TEST(Stream, a_nonblocking_connect_is_in_progress_until_it_is_writable) {
  Rsocket listener = listening();
  Rsocket client = stream();
  set_blocking(client, false);
  // Within one process the answer may be there at once.
  const int begun = connect(client, name_of(listener)) == 0 ? 0 : errno;
  EXPECT_THAT(begun, testing::AnyOf(0, EINPROGRESS));
  EXPECT_EQ(poll(client, POLLOUT), POLLOUT);
  EXPECT_EQ(value_of(client, SOL_SOCKET, SO_ERROR), 0);
  EXPECT_EQ(send(client, "x"), 1);
}

TEST(Stream, a_nonblocking_connect_that_fails_says_so_once_in_so_error) {
  Rsocket client = stream();
  sockaddr_in nowhere;
  {
    Rsocket gone = listening();
    nowhere = name_of(gone);
  }
  set_blocking(client, false);
  if (connect(client, nowhere) == -1 && errno == EINPROGRESS) {
    EXPECT_NE(poll(client, POLLOUT) & POLLERR, 0);
    EXPECT_EQ(value_of(client, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
  }
  EXPECT_EQ(value_of(client, SOL_SOCKET, SO_ERROR), 0);
}

TEST(Stream, nonblocking_receive_and_accept_would_block) {
  Pair pair;
  set_blocking(pair.client, false);
  EXPECT_EQ(receive(pair.client), words(EAGAIN));
  EXPECT_EQ(receive(pair.server, 1, MSG_DONTWAIT), words(EAGAIN));
  Rsocket listener = listening();
  set_blocking(listener, false);
  EXPECT_EQ(::raccept(listener.get(), nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(Stream, a_nonblocking_send_takes_what_fits_and_the_rest_after_the_peer_read) {
  Pair pair(4096);
  set_blocking(pair.client, false);
  const std::string all = pattern(100000);
  std::size_t sent = 0;
  std::string got;
  while (got.size() < all.size()) {
    while (sent < all.size()) {
      const auto part = ::rsend(pair.client.get(), all.data() + sent, all.size() - sent, 0);
      if (part < 0) {
        ASSERT_EQ(errno, EAGAIN);
        ASSERT_EQ(poll(pair.client, POLLOUT, 0), 0) << "EAGAIN, and yet writable";
        break;
      }
      sent += static_cast<std::size_t>(part);
    }
    got += receive(pair.server, 1000);
  }
  EXPECT_EQ(got, all);
}

// Messages cost credits: what is left at the end of the ring of a sender must not become the size of all that
// follow.
TEST(Stream, the_end_of_a_ring_cuts_one_message_only) {
  Pair pair(4096);  // rings of twice that
  constexpr std::size_t ring = 8192, left = 6, part = (ring - left) / 2;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(send(pair.client, pattern(part)), static_cast<ssize_t>(part));
    EXPECT_EQ(receive(pair.server, part, MSG_WAITALL).size(), part);
  }
  const std::string second = pattern(4000, 2);
  EXPECT_EQ(poll(pair.client, POLLOUT), POLLOUT);
  EXPECT_EQ(send(pair.client, second, MSG_DONTWAIT), static_cast<ssize_t>(second.size()));
}

TEST(Stream, a_blocking_send_of_much_more_than_the_buffers_arrives_whole) {
  Pair pair;
  const std::string all = pattern(5'000'000);
  auto sender = std::async(std::launch::async, [&] { return send(pair.client, all); });
  std::string got;
  while (got.size() < all.size()) got += receive(pair.server, 100'000);
  EXPECT_EQ(sender.get(), static_cast<ssize_t>(all.size()));
  EXPECT_TRUE(got == all);
}

TEST(Stream, both_directions_at_once_do_not_wait_for_each_other) {
  Pair pair(8192);
  const std::string there = pattern(1'000'000, 1), back = pattern(1'000'000, 2);
  const auto reader = [](const Rsocket& socket, std::size_t size) {
    std::string got;
    while (got.size() < size) got += receive(socket, 4096);
    return got;
  };
  auto at_server = std::async(std::launch::async, [&] { return reader(pair.server, there.size()); });
  auto at_client = std::async(std::launch::async, [&] { return reader(pair.client, back.size()); });
  auto from_server = std::async(std::launch::async, [&] { return send(pair.server, back); });
  EXPECT_EQ(send(pair.client, there), static_cast<ssize_t>(there.size()));
  EXPECT_EQ(from_server.get(), static_cast<ssize_t>(back.size()));
  EXPECT_TRUE(at_server.get() == there);
  EXPECT_TRUE(at_client.get() == back);
}

TEST(Stream, peeking_leaves_the_bytes) {
  Pair pair;
  send(pair.client, "twice");
  EXPECT_EQ(receive(pair.server, 3, MSG_PEEK), "twi");
  EXPECT_EQ(receive(pair.server), "twice");
}

TEST(Stream, waits_for_all_when_asked) {
  Pair pair;
  auto receiver = std::async(std::launch::async, [&] { return receive(pair.server, 10, MSG_WAITALL); });
  send(pair.client, "0123");
  send(pair.client, "4567");
  send(pair.client, "89");
  EXPECT_EQ(receiver.get(), "0123456789");
}

TEST(Stream, gathers_and_scatters) {
  Pair pair;
  std::string one = "ab", none, two = "cdefg";
  const iovec out[] = {{one.data(), one.size()}, {none.data(), 0}, {two.data(), two.size()}};
  EXPECT_EQ(::rwritev(pair.client.get(), out, 3), 7);
  std::string first(3, ' '), second(10, ' ');
  const iovec in[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  EXPECT_EQ(::rreadv(pair.server.get(), in, 2), 7);
  EXPECT_EQ(first, "abc");
  EXPECT_EQ(second.substr(0, 4), "defg");
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(out);
  message.msg_iovlen = 3;
  EXPECT_EQ(::rsendmsg(pair.server.get(), &message, 0), 7);
  message.msg_iov = const_cast<iovec*>(in);
  message.msg_iovlen = 2;
  EXPECT_EQ(::rrecvmsg(pair.client.get(), &message, 0), 7);
  EXPECT_EQ(first, "abc");
}

// readv(2) and writev(2) call it EINVAL, POSIX's sendmsg() and recvmsg() EMSGSIZE.
TEST(Stream, more_buffers_than_the_limit_are_refused) {
  Pair pair;
  std::vector<iovec> pieces(IOV_MAX + 1);
  const auto count = static_cast<int>(pieces.size());
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const auto why = [](ssize_t result) { return result < 0 ? errno : 0; };
  EXPECT_EQ(why(::rwritev(pair.client.get(), pieces.data(), count)), EINVAL);
  EXPECT_EQ(why(::rreadv(pair.client.get(), pieces.data(), count)), EINVAL);
  EXPECT_EQ(why(::rsendmsg(pair.client.get(), &message, 0)), EMSGSIZE);
  EXPECT_EQ(why(::rrecvmsg(pair.client.get(), &message, MSG_DONTWAIT)), EMSGSIZE);
}

TEST(Stream, a_transfer_of_nothing_is_nothing) {
  Pair pair;
  EXPECT_EQ(send(pair.client, ""), 0);
  EXPECT_EQ(::rrecv(pair.server.get(), nullptr, 0, 0), 0);
}

TEST(Stream, many_connections_of_one_listener_are_kept_apart) {
  Rsocket listener = listening(64);
  std::vector<Rsocket> clients, servers;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(stream());
    ASSERT_EQ(connect(clients.back(), name_of(listener)), 0) << std::strerror(errno);
    ASSERT_EQ(send(clients.back(), std::to_string(i)), i < 10 ? 1 : 2);
  }
  for (int i = 0; i < 20; ++i) {
    servers.emplace_back(::raccept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(receive(servers.back()), std::to_string(i));
  }
}

TEST(Stream, accepted_sockets_have_the_listeners_buffers_as_they_are_at_the_time) {
  Rsocket listener = listening();
  set(listener, SOL_SOCKET, SO_RCVBUF, 30000);
  set(listener, SOL_RDMA, RDMA_IOMAPSIZE, 3);
  Rsocket client = stream();
  ASSERT_EQ(connect(client, name_of(listener)), 0);
  Rsocket server(::raccept(listener.get(), nullptr, nullptr));
  EXPECT_EQ(value_of(server, SOL_SOCKET, SO_RCVBUF), 60000);
  EXPECT_EQ(value_of(server, SOL_RDMA, RDMA_IOMAPSIZE), 3);
}

TEST(Stream, says_what_it_is) {
  Rsocket listener = listening();
  EXPECT_EQ(value_of(listener, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
  EXPECT_EQ(value_of(listener, SOL_SOCKET, SO_DOMAIN), AF_INET);
  EXPECT_EQ(value_of(listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
  EXPECT_EQ(::rfcntl(listener.get(), F_GETFL) & O_NONBLOCK, 0);
  set_blocking(listener, false);
  EXPECT_EQ(::rfcntl(listener.get(), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  EXPECT_EQ(::rfcntl(listener.get(), F_DUPFD, 0), -1);
  EXPECT_EQ(errno, ENOTSUP);
}

TEST(Stream, an_address_is_given_to_one_listener_only) {
  Rsocket first = listening();
  Rsocket second = stream();
  auto address = name_of(first);
  EXPECT_EQ(::rbind(second.get(), as_address(address), sizeof address), -1);
  EXPECT_EQ(errno, EADDRINUSE);
}

}  // namespace
}  // namespace weir::rsocket
