// When a process opens the UDP port of RoCEv2, in a network namespace of its own with an
// address that is not loopback.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "verbs/ibv/private_link.hpp"
#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

constexpr char wire_address[] = "10.77.0.1", elsewhere[] = "10.77.0.9", a_group[] = "239.1.2.3";
constexpr unsigned roce_port = 4791;

ibv_gid mapped(const char* v4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  ::inet_pton(AF_INET, v4, gid.raw + 12);
  return gid;
}

bool configure(int socket, unsigned long request, const char* interface, const char* address) {
  ifreq change{};
  std::strcpy(change.ifr_name, interface);
  if (address == nullptr) {
    change.ifr_flags = IFF_UP | IFF_LOOPBACK;
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    ::inet_pton(AF_INET, address, &v4.sin_addr);
    std::memcpy(&change.ifr_addr, &v4, sizeof v4);
  }
  return ::ioctl(socket, request, &change) == 0;
}

bool own_network() {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool done =
      configure(socket, SIOCSIFFLAGS, "lo", nullptr) && configure(socket, SIOCSIFADDR, "lo:1", wire_address);
  ::close(socket);
  return done;
}

// The namespace has no other process.
bool port_is_open() {
  for (const char* const table : {"/proc/self/net/udp", "/proc/self/net/udp6"}) {
    std::ifstream lines(table);
    std::string line;
    while (std::getline(lines, line)) {
      unsigned port = 0;
      if (std::sscanf(line.c_str(), " %*u: %*[0-9A-F]:%x", &port) == 1 && port == roce_port) return true;
    }
  }
  return false;
}

// Their places in the GID table.
constexpr int wire_index = 0, loopback_index = 1;

class Program {
 public:
  void take_datagrams() { make_ready(IBV_QPT_UD); }
  void connect_to_itself() { make_ready(IBV_QPT_RC); }
  void ask_for(int index) {
    ibv_gid gid{};
    must(ibv_query_gid(context_.get(), 1, index, &gid) == 0);
  }
  void ask_for_all() {
    std::array<ibv_gid_entry, 64> entries;
    must(ibv_query_gid_table(context_.get(), entries.data(), entries.size(), 0) == 2);
  }
  void attach_to(const char* group) {
    const ibv_gid gid = mapped(group);
    must(ibv_attach_mcast(qp_.get(), &gid, 0) == 0);
  }
  void make_a_handle_to(const char* address) {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.dgid = mapped(address);
    ah_.reset(ibv_create_ah(pd_.get(), &attr));
    must(ah_ != nullptr);
  }

 private:
  static void must(bool worked) {
    if (!worked) std::abort();
  }
  void make_ready(ibv_qp_type type) {
    ibv_qp_init_attr init = init_attr(cq_.get(), {.type = type});
    qp_.reset(ibv_create_qp(pd_.get(), &init));
    must(modify(qp_.get(), to_init(type)) == 0);
    must(modify(qp_.get(), to_rtr(type, qp_->qp_num, mapped(wire_address))) == 0);
  }

  Context context_ = open_device();
  Pd pd_{ibv_alloc_pd(context_.get())};
  Cq cq_{ibv_create_cq(context_.get(), 8, nullptr, nullptr, 0)};
  Ah ah_;
  Qp qp_;
};

struct Row {
  const char* name;
  void (*does)(Program&);
  bool opens;
  const char* wire = "1";
};
const Row rows[] = {
    {"connects_to_itself_by_an_address_of_its_own",
     [](Program& p) { p.ask_for(wire_index), p.connect_to_itself(); }, false},
    {"takes_datagrams_and_knows_no_address", [](Program& p) { p.take_datagrams(); }, false},
    {"takes_datagrams_and_knows_loopback_alone",
     [](Program& p) { p.ask_for(loopback_index), p.take_datagrams(); }, false},
    {"takes_datagrams_and_sends_them_to_its_own_host",
     [](Program& p) { p.take_datagrams(), p.make_a_handle_to(wire_address); }, false},
    {"knows_an_address_and_then_takes_datagrams",
     [](Program& p) { p.ask_for(wire_index), p.take_datagrams(); }, true},
    {"takes_datagrams_and_then_knows_an_address",
     [](Program& p) { p.take_datagrams(), p.ask_for(wire_index); }, true},
    {"takes_datagrams_and_then_reads_the_table", [](Program& p) { p.take_datagrams(), p.ask_for_all(); },
     true},
    {"may_send_datagrams_to_another_host", [](Program& p) { p.make_a_handle_to(elsewhere); }, true},
    // Its one interface is loopback's, which carries no groups.
    {"is_in_a_group_that_stays_on_this_host",
     [](Program& p) { p.take_datagrams(), p.attach_to(a_group), p.make_a_handle_to(a_group); }, false},
    {"knows_an_address_and_takes_datagrams_where_packets_are_switched_off",
     [](Program& p) { p.ask_for(wire_index), p.take_datagrams(); }, false, "0"},
};

enum Ending : int { closed, opened, no_namespace };

// What a process of its own, with a namespace and a NIC of its own, ends with.
template <class Work>
int ending_of(const char* wire, const char* gids, const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!own_network()) ::_exit(no_namespace);
    ::setenv("WEIR_GIDS", gids, 1);
    ::setenv("WEIR_WIRE", wire, 1);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class WirePort : public testing::TestWithParam<Row> {
 protected:
  static void SetUpTestSuite() { use_own_runtime_directory(); }
};
INSTANTIATE_TEST_SUITE_P(Programs, WirePort, testing::ValuesIn(rows),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST_P(WirePort, is_opened_by_a_program_that_another_host_can_reach_and_by_no_other) {
  const int ending = ending_of(GetParam().wire, "10.77.0.1,127.0.0.1", [] {
    Program program;
    GetParam().does(program);
    return port_is_open() ? opened : closed;
  });
  if (ending == no_namespace) GTEST_SKIP() << "the kernel lets this user make no network namespace";
  EXPECT_EQ(ending, GetParam().opens ? opened : closed);
}

struct Reached {
  const char *wire, *address, *text;
};
constexpr Reached reached[] = {
    {"1", wire_address,
     "this host (shared memory; other users by packets), other hosts (packets of 4096 bytes, as lo has an "
     "MTU of 65536)"},
    {"1", "127.0.0.1",
     "this host (shared memory; other users by packets); no other host, as it is a loopback address"},
    {"1", "192.0.2.9",
     "this host (shared memory; other users by packets); no other host, as no interface has this address"},
    {"0", wire_address,
     "this host (shared memory); no other host, as packets are switched off (WEIR_WIRE=0)"},
};

TEST(WireAddresses, say_what_they_reach_and_why) {
  for (const Reached& row : reached) {
    SCOPED_TRACE(row.text);
    constexpr int same = 10, another = 11;
    const int ending = ending_of(row.wire, "10.77.0.1,127.0.0.1,192.0.2.9", [&] {
      const ibv_gid gid = mapped(row.address);
      const std::string text = weir_reaches(&gid);
      if (text != row.text) std::fprintf(stderr, "%s\n", text.c_str());
      return text == row.text ? same : another;
    });
    if (ending == no_namespace) GTEST_SKIP() << "the kernel lets this user make no network namespace";
    EXPECT_EQ(ending, same);
  }
}

}  // namespace
}  // namespace weir::verbs_test
