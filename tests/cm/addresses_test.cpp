// Addresses that appear and disappear while the device is open, and the loopback network: verbs and the
// connection manager follow one rule. Runs in its own network namespace, whose addresses a test may change.
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>

#include "link/unique_fd.hpp"
#include "tests/cm/cm_fixture.hpp"

namespace weir::cm {
namespace {

// Once, before there is a second thread. The addresses are those of the interface's alias "lo:1"; "lo" has
// its own before the NIC starts, which would tell of them, too.
class OwnNetwork {
 public:
  static bool entered() {
    static const bool done = ::unshare(CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
    if (done) up("lo", true);
    return done;
  }
  static void up(const char* name, bool up) {
    ifreq request = named(name);
    ASSERT_EQ(::ioctl(socket(), SIOCGIFFLAGS, &request), 0) << std::strerror(errno);
    request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    ASSERT_EQ(::ioctl(socket(), SIOCSIFFLAGS, &request), 0) << std::strerror(errno);
  }
  static void add(const char* address) {
    ifreq request = named("lo:1");
    const sockaddr_in in = loopback(0, address);
    std::memcpy(&request.ifr_addr, &in, sizeof in);
    ASSERT_EQ(::ioctl(socket(), SIOCSIFADDR, &request), 0) << std::strerror(errno);
  }
  static void remove() { up("lo:1", false); }
  static void set_mtu(int bytes) {
    ifreq request = named("lo");
    request.ifr_mtu = bytes;
    ASSERT_EQ(::ioctl(socket(), SIOCSIFMTU, &request), 0) << std::strerror(errno);
  }

 private:
  static ifreq named(const char* name) {
    ifreq request{};
    std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    return request;
  }
  static int socket() {
    static const link::UniqueFd made(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return made.get();
  }
};

class Addresses : public testing::Test {
 protected:
  void SetUp() override {
    if (!entered_) GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
    ibv_device** list = ibv_get_device_list(nullptr);
    device_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NE(device_, nullptr);
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    place_of("127.0.0.1");  // reports all changes up to here, so the next test sees none of them
    ibv_close_device(device_);
  }
  int place_of(const char* address) const {
    ibv_gid wanted{};
    wanted.raw[10] = wanted.raw[11] = 0xff;
    EXPECT_EQ(::inet_pton(AF_INET, address, wanted.raw + 12), 1);
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(device_, 1, &port), 0);
    for (int i = 0; i < port.gid_tbl_len; ++i) {
      ibv_gid gid{};
      EXPECT_EQ(ibv_query_gid(device_, 1, i, &gid), 0);
      if (std::memcmp(&gid, &wanted, sizeof gid) == 0) return i;
    }
    return -1;
  }
  ibv_mtu active_mtu() const {
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(device_, 1, &port), 0);
    return port.active_mtu;
  }
  void expect_gid_change() const { expect_event(IBV_EVENT_GID_CHANGE); }
  void expect_event(ibv_event_type type) const {
    pollfd readable{.fd = device_->async_fd, .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&readable, 1, patience_ms), 1);
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(device_, &event), 0);
    EXPECT_EQ(event.event_type, type);
    EXPECT_EQ(event.element.port_num, 1);
    ibv_ack_async_event(&event);
  }
  int bind_error(const char* address) {
    const IdRef id = make_id(events_);
    auto to = loopback(0, address);
    return rdma_bind_addr(id.get(), as_address(to)) == 0 ? 0 : errno;
  }
  const bool entered_ = OwnNetwork::entered();  // before the library makes threads
  Events events_;
  ibv_context* device_ = nullptr;
};

TEST_F(Addresses, that_come_after_the_device_was_opened_are_gids_that_programs_hear_of) {
  const int before = place_of("127.0.0.1");
  ASSERT_GE(before, 0);
  EXPECT_EQ(place_of("10.9.9.1"), -1);
  OwnNetwork::add("10.9.9.1");
  expect_gid_change();  // not queried yet
  EXPECT_GE(place_of("10.9.9.1"), 0);
  EXPECT_EQ(place_of("127.0.0.1"), before);
  OwnNetwork::remove();
  EXPECT_EQ(place_of("10.9.9.1"), -1);
  expect_gid_change();
}

TEST_F(Addresses, that_go_leave_the_others_where_they_are) {
  OwnNetwork::add("10.9.9.1");
  const int first = place_of("10.9.9.1");
  OwnNetwork::remove();
  OwnNetwork::add("10.9.9.2");
  EXPECT_EQ(place_of("10.9.9.2"), first);  // the place that was empty
  EXPECT_EQ(place_of("10.9.9.1"), -1);
  OwnNetwork::remove();
}

TEST_F(Addresses, the_active_mtu_follows_the_interface_of_an_address_that_others_reach) {
  constexpr int loopback_mtu = 65'536;
  struct Row {
    int interface;
    ibv_mtu active;
  };
  constexpr Row rows[] = {
      {1500, IBV_MTU_1024}, {4176, IBV_MTU_4096}, {4175, IBV_MTU_2048}, {9000, IBV_MTU_4096}};
  OwnNetwork::set_mtu(1500);
  EXPECT_EQ(active_mtu(), IBV_MTU_4096) << "of loopback addresses alone there are no packets";
  OwnNetwork::set_mtu(loopback_mtu);
  OwnNetwork::add("10.9.9.1");
  expect_gid_change();
  EXPECT_EQ(active_mtu(), IBV_MTU_4096);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.interface);
    OwnNetwork::set_mtu(row.interface);
    expect_event(IBV_EVENT_PORT_ACTIVE);  // not queried yet
    EXPECT_EQ(active_mtu(), row.active);
  }
  OwnNetwork::remove();
  expect_gid_change();
  OwnNetwork::set_mtu(loopback_mtu);
}

TEST_F(Addresses, can_be_bound_from_the_moment_they_are_there) {
  EXPECT_EQ(bind_error("10.9.9.3"), EADDRNOTAVAIL);
  OwnNetwork::add("10.9.9.3");
  EXPECT_EQ(bind_error("10.9.9.3"), 0);
  OwnNetwork::remove();
  EXPECT_EQ(bind_error("10.9.9.3"), EADDRNOTAVAIL);
}

TEST_F(Addresses, of_the_whole_loopback_network_are_this_host) {
  for (const char* address : {"127.0.0.1", "127.0.0.2", "127.255.255.254"}) {
    EXPECT_EQ(bind_error(address), 0) << address;
    const IdRef id = make_id(events_);
    auto to = loopback(7471, address);
    ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, as_address(to), 1000), 0) << address;
    events_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  }
}

}  // namespace
}  // namespace weir::cm
