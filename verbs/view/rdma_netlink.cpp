#include "verbs/view/rdma_netlink.hpp"

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

namespace weir::verbs {
namespace {

constexpr std::uint8_t channel_adapter = 1, port_active = 4, link_up = 5;  // as in verbs.h and sysfs
constexpr std::uint32_t the_port = 1;
constexpr std::uint8_t shared = 1;  // every network namespace sees the devices

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + NLMSG_ALIGNTO - 1) & ~std::size_t{NLMSG_ALIGNTO - 1};
}

// The messages of an answer, each begun with its header and ended with its length.
class Answer {
 public:
  Answer(std::vector<std::byte>& bytes, const nlmsghdr& asked, std::uint32_t socket)
      : bytes_(bytes), asked_(asked), socket_(socket) {}

  void begin(std::uint16_t type, std::uint16_t flags) {
    begun_ = bytes_.size();
    put(nlmsghdr{0, type, flags, asked_.nlmsg_seq, socket_});
  }
  void end() {
    const auto length = static_cast<std::uint32_t>(bytes_.size() - begun_);
    std::memcpy(bytes_.data() + begun_, &length, sizeof length);  // nlmsg_len is a message's first field
    bytes_.resize(aligned(bytes_.size()));
  }

  template <typename Value>
  void put(const Value& value) {
    append(&value, sizeof value);
  }
  template <typename Value>
  void attribute(std::uint16_t type, const Value& value) {
    attribute_bytes(type, &value, sizeof value);
  }
  void attribute(std::uint16_t type, const std::string& text) {
    attribute_bytes(type, text.c_str(), text.size() + 1);
  }

 private:
  void append(const void* data, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  void attribute_bytes(std::uint16_t type, const void* data, std::size_t size) {
    put(nlattr{static_cast<std::uint16_t>(sizeof(nlattr) + size), type});
    append(data, size);
    bytes_.resize(aligned(bytes_.size()));
  }

  std::vector<std::byte>& bytes_;
  const nlmsghdr& asked_;
  std::uint32_t socket_;
  std::size_t begun_ = 0;
};

// The attributes of a request that choose what is shown.
struct Wanted {
  std::optional<std::uint32_t> device, port;
};

Wanted wanted_by(std::span<const std::byte> attributes) {
  Wanted wanted;
  while (attributes.size() >= sizeof(nlattr)) {
    nlattr header{};
    std::memcpy(&header, attributes.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > attributes.size()) return wanted;
    std::uint32_t number = 0;
    if (header.nla_len == sizeof header + sizeof number) {
      std::memcpy(&number, attributes.data() + sizeof header, sizeof number);
      if (header.nla_type == RDMA_NLDEV_ATTR_DEV_INDEX) wanted.device = number;
      if (header.nla_type == RDMA_NLDEV_ATTR_PORT_INDEX) wanted.port = number;
    }
    attributes = attributes.subspan(std::min(aligned(header.nla_len), attributes.size()));
  }
  return wanted;
}

void show(Answer& answer, std::uint16_t command, std::uint16_t flags, std::uint32_t index,
          const ListedDevice& device) {
  answer.begin(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), flags);
  answer.attribute(RDMA_NLDEV_ATTR_DEV_INDEX, index);
  answer.attribute(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
  answer.attribute(RDMA_NLDEV_ATTR_PORT_INDEX, the_port);  // of a device: how many it has
  if (command == RDMA_NLDEV_CMD_GET) {
    answer.attribute(RDMA_NLDEV_ATTR_FW_VERSION, device.firmware);
    answer.attribute(RDMA_NLDEV_ATTR_NODE_GUID, device.guid);
    answer.attribute(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, device.guid);
    answer.attribute(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, channel_adapter);
    answer.attribute(RDMA_NLDEV_ATTR_DEV_PROTOCOL, std::string("roce"));
  } else {
    answer.attribute(RDMA_NLDEV_ATTR_PORT_STATE, port_active);
    answer.attribute(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, link_up);
    if (device.interface_index != 0) {
      answer.attribute(RDMA_NLDEV_ATTR_NDEV_INDEX, device.interface_index);
      answer.attribute(RDMA_NLDEV_ATTR_NDEV_NAME, device.interface);
    }
  }
  answer.end();
}

void acknowledge(Answer& answer, const nlmsghdr& asked, int error) {
  answer.begin(NLMSG_ERROR, 0);
  answer.put(nlmsgerr{-error, asked});
  answer.end();
}

void answer_one(const nlmsghdr& asked, std::span<const std::byte> attributes,
                std::span<const ListedDevice> devices, Answer& answer) {
  const auto command = static_cast<std::uint16_t>(RDMA_NL_GET_OP(asked.nlmsg_type));
  if (RDMA_NL_GET_CLIENT(asked.nlmsg_type) != RDMA_NL_NLDEV) return acknowledge(answer, asked, EOPNOTSUPP);
  if (command == RDMA_NLDEV_CMD_SYS_GET) {
    answer.begin(asked.nlmsg_type, 0);
    answer.attribute(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, shared);
    answer.end();
    if ((asked.nlmsg_flags & NLM_F_ACK) != 0) acknowledge(answer, asked, 0);
    return;
  }
  if (command != RDMA_NLDEV_CMD_GET && command != RDMA_NLDEV_CMD_PORT_GET)
    return acknowledge(answer, asked, EOPNOTSUPP);
  const Wanted wanted = wanted_by(attributes);
  if ((asked.nlmsg_flags & NLM_F_DUMP) != 0) {
    for (std::uint32_t index = 0; index < devices.size(); ++index)
      if (!wanted.device || *wanted.device == index)
        show(answer, command, NLM_F_MULTI, index, devices[index]);
    answer.begin(NLMSG_DONE, NLM_F_MULTI);
    answer.put(std::int32_t{0});
    return answer.end();
  }
  if (!wanted.device) return acknowledge(answer, asked, EINVAL);
  if (*wanted.device >= devices.size()) return acknowledge(answer, asked, ENODEV);
  if (command == RDMA_NLDEV_CMD_PORT_GET && wanted.port != the_port)
    return acknowledge(answer, asked, EINVAL);
  show(answer, command, 0, *wanted.device, devices[*wanted.device]);
  if ((asked.nlmsg_flags & NLM_F_ACK) != 0) acknowledge(answer, asked, 0);
}

}  // namespace

std::vector<std::byte> answer_rdma_netlink(std::span<const std::byte> datagram, std::uint32_t socket,
                                           std::span<const ListedDevice> devices) {
  std::vector<std::byte> bytes;
  while (datagram.size() >= sizeof(nlmsghdr)) {
    nlmsghdr asked{};
    std::memcpy(&asked, datagram.data(), sizeof asked);
    if (asked.nlmsg_len < sizeof asked || asked.nlmsg_len > datagram.size()) break;
    Answer answer(bytes, asked, socket);
    if ((asked.nlmsg_flags & NLM_F_REQUEST) != 0)
      answer_one(asked, datagram.subspan(sizeof asked, asked.nlmsg_len - sizeof asked), devices, answer);
    datagram = datagram.subspan(std::min(aligned(asked.nlmsg_len), datagram.size()));
  }
  return bytes;
}

}  // namespace weir::verbs
