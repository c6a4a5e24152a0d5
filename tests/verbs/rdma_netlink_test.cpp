// What programs are answered that ask the kernel's RDMA netlink for devices.
#include "verbs/view/rdma_netlink.hpp"

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace weir::verbs {
namespace {

constexpr std::uint32_t socket_number = 77, sequence = 5;

std::vector<std::byte> request(std::uint16_t command, std::uint16_t flags,
                               std::vector<std::pair<std::uint16_t, std::uint32_t>> wanted,
                               std::uint16_t client = RDMA_NL_NLDEV) {
  const std::size_t length = sizeof(nlmsghdr) + wanted.size() * (sizeof(nlattr) + sizeof(std::uint32_t));
  std::vector<std::byte> bytes(length);
  const nlmsghdr header{static_cast<std::uint32_t>(length),
                        static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(client, command)),
                        static_cast<std::uint16_t>(NLM_F_REQUEST | flags), sequence, 0};
  std::memcpy(bytes.data(), &header, sizeof header);
  std::byte* at = bytes.data() + sizeof header;
  for (const auto& [type, value] : wanted) {
    const nlattr attribute{sizeof(nlattr) + sizeof value, type};
    std::memcpy(at, &attribute, sizeof attribute);
    std::memcpy(at + sizeof attribute, &value, sizeof value);
    at += sizeof attribute + sizeof value;
  }
  return bytes;
}

struct Answered {
  std::uint16_t type;
  std::uint16_t flags;
  std::string body;
};

std::vector<Answered> ask(const std::vector<std::byte>& asked) {
  const ListedDevice devices[] = {{"weir0", 1, "0.1.0", 2, "eth0"}, {"weir1", 2, "0.1.0", 0, ""}};
  const auto bytes = answer_rdma_netlink(asked, socket_number, devices);
  std::vector<Answered> messages;
  for (std::size_t at = 0; at < bytes.size();) {
    nlmsghdr header{};
    std::memcpy(&header, bytes.data() + at, sizeof header);
    EXPECT_EQ(header.nlmsg_pid, socket_number);
    EXPECT_EQ(header.nlmsg_seq, sequence);
    messages.push_back({header.nlmsg_type, header.nlmsg_flags,
                        std::string(reinterpret_cast<const char*>(bytes.data()) + at + sizeof header,
                                    header.nlmsg_len - sizeof header)});
    at += NLMSG_ALIGN(header.nlmsg_len);
  }
  return messages;
}

int error_in(const Answered& message) {
  std::int32_t error = 0;
  std::memcpy(&error, message.body.data(), sizeof error);
  return -error;
}

TEST(RdmaNetlink, lists_all_devices_and_says_that_it_is_done) {
  const auto messages = ask(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, {}));
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_NE(messages[0].body.find(std::string_view("weir0\0", 6)), std::string::npos);
  EXPECT_NE(messages[1].body.find(std::string_view("weir1\0", 6)), std::string::npos);
  EXPECT_EQ(messages[2].type, NLMSG_DONE);
  for (const Answered& message : messages) EXPECT_EQ(message.flags, NLM_F_MULTI);
}

TEST(RdmaNetlink, shows_a_port_with_its_interface) {
  const auto messages = ask(request(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK,
                                    {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}, {RDMA_NLDEV_ATTR_PORT_INDEX, 1}}));
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_NE(messages[0].body.find(std::string_view("eth0\0", 5)), std::string::npos);
  EXPECT_EQ(messages[1].type, NLMSG_ERROR);
  EXPECT_EQ(error_in(messages[1]), 0);
}

TEST(RdmaNetlink, refuses_what_is_not_there) {
  using Attributes = std::vector<std::pair<std::uint16_t, std::uint32_t>>;
  const struct {
    std::uint16_t command;
    Attributes wanted;
    int error;
  } rows[] = {
      {RDMA_NLDEV_CMD_GET, {}, EINVAL},
      {RDMA_NLDEV_CMD_GET, {{RDMA_NLDEV_ATTR_DEV_INDEX, 2}}, ENODEV},
      {RDMA_NLDEV_CMD_PORT_GET, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}}, EINVAL},
      {RDMA_NLDEV_CMD_PORT_GET, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}, {RDMA_NLDEV_ATTR_PORT_INDEX, 2}}, EINVAL},
      {RDMA_NLDEV_CMD_SET, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}}, EOPNOTSUPP},
      {RDMA_NLDEV_CMD_RES_GET, {}, EOPNOTSUPP}};
  for (const auto& [command, wanted, error] : rows) {
    const auto messages = ask(request(command, 0, wanted));
    ASSERT_EQ(messages.size(), 1u) << command;
    EXPECT_EQ(messages[0].type, NLMSG_ERROR) << command;
    EXPECT_EQ(error_in(messages[0]), error) << command;
  }
}

TEST(RdmaNetlink, refuses_the_kernels_other_clients) {
  const auto messages = ask(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, {}, RDMA_NL_LS));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(error_in(messages[0]), EOPNOTSUPP);
}

TEST(RdmaNetlink, ignores_what_is_cut_short) {
  auto bytes = request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, {});
  bytes.pop_back();
  EXPECT_TRUE(ask(bytes).empty());
}

}  // namespace
}  // namespace weir::verbs
