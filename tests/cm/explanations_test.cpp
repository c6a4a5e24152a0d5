// The message when nobody listens or an address cannot be reached: the visible
// cause, and the next step.
#include "verbs/cm/explanations.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/scratch_directory.hpp"

namespace weir::cm {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Explanations : public testing::Test {
 protected:
  Explanations() {
    for (const fs::path& made : {ours_ / "cm", root_ / "shm", root_ / "net"}) fs::create_directories(made);
  }
  static Endpoint at(const char* address, std::uint16_t port) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET, address, &in.sin_addr), 1);
    return *endpoint_of(reinterpret_cast<const sockaddr*>(&in));
  }
  std::string why(std::uint16_t port) const {
    return why_nobody_listens(RDMA_PS_TCP, at("127.0.0.1", port),
                              {.directory = ours_, .network = root_ / "net"});
  }
  test::ScratchDirectory scratch_;
  fs::path root_ = scratch_.path(), ours_ = root_ / "weir-7/net-1";
};

TEST_F(Explanations, name_the_address_the_user_the_folder_and_the_next_step) {
  EXPECT_THAT(why(7471), AllOf(HasSubstr("RDMA port 7471 of 127.0.0.1"), HasSubstr(ours_.string()),
                               HasSubstr("user " + std::to_string(::geteuid())), HasSubstr("check the port"),
                               HasSubstr("weir run"), Not(HasSubstr("namespace"))));
}

TEST_F(Explanations, of_a_wrong_port_name_those_there_are) {
  for (const char* name : {"tcp-7471", "tcp-80", "udp-9"}) fs::create_directories(ours_ / "cm" / name);
  EXPECT_THAT(why(7472), HasSubstr("there are RDMA ports 80, 7471;"));
}

TEST_F(Explanations, of_a_port_of_another_network_namespace_say_so) {
  fs::create_directories(root_ / "weir-7/net-2/cm/tcp-7471");
  EXPECT_THAT(why(7471), HasSubstr("another network namespace has that port"));
  EXPECT_THAT(why(7472), Not(HasSubstr("another network namespace")));
}

TEST_F(Explanations, of_a_port_that_only_tcp_has_name_whose_it_is) {
  std::ofstream(root_ / "net/tcp")
      << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      << "   0: 00000000:1D2F 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1\n"
      << "   1: 0100007F:1D30 0100007F:1D2F 01 00000000:00000000 00:00000000 00000000  1000        0 1 1\n";
  EXPECT_THAT(why(0x1d2f), HasSubstr("a program of user 1000 listens there for TCP"));
  EXPECT_THAT(why(0x1d30), Not(HasSubstr("listens there for TCP")));  // connected, not listening
}

TEST(WhyNotReached, tells_an_address_of_another_host_from_one_that_tcp_does_not_reach) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  ASSERT_EQ(::inet_pton(AF_INET, "10.1.2.3", &in.sin_addr), 1);
  EXPECT_THAT(why_not_reached(*endpoint_of(reinterpret_cast<const sockaddr*>(&in))),
              AllOf(HasSubstr("10.1.2.3"), HasSubstr("WEIR_WIRE"), HasSubstr("network namespace")));
}

}  // namespace
}  // namespace weir::cm
