// libibumad's calls (umad(7)), with which `ibping`, `iblinkinfo`, `ibnetdiscover` and others send management
// datagrams: there is no /dev/infiniband/umad0.
//
// Subnet management packets are answered here, from what the network's keeper says of it. Other requests go
// to the host with that LID, in UDP datagrams between such programs, where the one that registered as their
// server gets them; requests that are not answered in time are handed back with ETIMEDOUT, as the kernel
// does.
//
// Entry points of other people's programs: any thread; errors as libibumad returns them, negative.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "verbs/ibv/gid_table.hpp"
#include "verbs/ibv/lid.hpp"
#include "verbs/ibv/sysfs_files.hpp"
#include "verbs/view/subnet.hpp"

namespace {

using namespace weir::verbs;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// ib_user_mad and ib_mad_addr of the kernel's interface (uapi/rdma/ib_user_mad.h) without the index of a
// P_Key: libibumad (umad_size(), umad_get_mad()) adds that once it has opened /dev/infiniband/umad0.
struct Address {
  std::uint32_t qpn, qkey;  // big-endian, as lid
  std::uint16_t lid;
  std::uint8_t rest[26];
};
struct UserMad {
  std::uint32_t agent, status, timeout_ms, retries, length;
  Address address;
  std::uint8_t data[];
};
static_assert(sizeof(UserMad) == 56);

constexpr std::uint16_t management_port = 4793;  // UDP; of the programs that answer
constexpr std::size_t max_agents = 32, max_waiting = 1024;
constexpr std::array<char, 8> mark{'W', 'E', 'I', 'R', 'M', 'A', 'D', '1'};
constexpr std::uint8_t directed_class = 0x81, routed_class = 0x01, response_bit = 0x80;

struct Datagram {
  std::array<char, 8> mark;
  Mad mad;
};

struct Agent {
  std::uint8_t management_class = 0;
  bool serves = false;  // it registered for requests
  bool used = false;
};

struct Request {
  std::uint32_t agent;
  Address to;
  Mad mad;
  milliseconds timeout;
  int retries;
  Clock::time_point until;
};

struct Received {
  std::uint32_t agent, status;
  Address from;
  Mad mad;
};

struct ManagementPort {
  std::mutex mutex;
  int socket = -1;
  std::array<Agent, max_agents> agents;
  std::vector<Request> waiting;
  std::deque<Received> received;
};

std::mutex& ports_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::map<int, std::shared_ptr<ManagementPort>>& ports() {
  static auto* const all =
      new std::map<int, std::shared_ptr<ManagementPort>>;  // programs may ask while they exit
  return *all;
}
std::shared_ptr<ManagementPort> port_at(int number) {
  const std::lock_guard lock(ports_mutex());
  const auto found = ports().find(number);
  return found == ports().end() ? nullptr : found->second;
}

// As it is now: cables may have been pulled.
Subnet subnet_now() {
  const char* const folder = std::getenv("WEIR_FABRIC");
  const char* const host = std::getenv("WEIR_FABRIC_HOST");
  if (folder != nullptr && host != nullptr) {
    std::ostringstream text;
    text << std::ifstream(std::string(folder) + "/topology").rdbuf();
    if (auto subnet = read_subnet(text.str(), host, guid_at_host)) return *std::move(subnet);
  }
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return lonely_subnet(name.data(), port_lid(), guid_at_host);
}

// The address with that LID: ours but for the last two bytes (lid.hpp).
sockaddr_in address_of(std::uint16_t lid) {
  ibv_ah_attr to{};
  to.dlid = lid;
  const ibv_ah_attr whole = with_grh(to);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(management_port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (whole.is_global) std::memcpy(&address.sin_addr, whole.grh.dgid.raw + 12, 4);
  return address;
}

void send_to(const ManagementPort& port, const sockaddr_in& to, const Mad& mad) {
  const Datagram datagram{mark, mad};
  (void)::sendto(port.socket, &datagram, sizeof datagram, 0, reinterpret_cast<const sockaddr*>(&to),
                 sizeof to);
}

// Responses go back to the port that asked, which travels as the number of its queue pair.
sockaddr_in destination(const Address& to, bool is_response) {
  sockaddr_in address = address_of(ntohs(to.lid));
  if (is_response) address.sin_port = htons(static_cast<std::uint16_t>(ntohl(to.qpn)));
  return address;
}

bool same_transaction(const Mad& one, const Mad& other) { return std::equal(&one[8], &one[16], &other[8]); }

void take_datagram(ManagementPort& port) {
  Datagram datagram{};
  sockaddr_in from{};
  socklen_t size = sizeof from;
  const ssize_t count = ::recvfrom(port.socket, &datagram, sizeof datagram, MSG_DONTWAIT | MSG_TRUNC,
                                   reinterpret_cast<sockaddr*>(&from), &size);
  if (count != sizeof datagram || datagram.mark != mark || port.received.size() >= max_waiting) return;
  Address address{};
  address.lid = htons(static_cast<std::uint16_t>(ntohl(from.sin_addr.s_addr)));
  address.qpn = htonl(ntohs(from.sin_port));
  if ((datagram.mad[3] & response_bit) != 0) {
    const auto asked = std::ranges::find_if(
        port.waiting, [&](const Request& each) { return same_transaction(each.mad, datagram.mad); });
    if (asked == port.waiting.end()) return;
    port.received.push_back({asked->agent, 0, address, datagram.mad});
    port.waiting.erase(asked);
    return;
  }
  for (std::uint32_t agent = 0; agent < port.agents.size(); ++agent)
    if (port.agents[agent].serves && port.agents[agent].management_class == datagram.mad[1]) {
      port.received.push_back({agent, 0, address, datagram.mad});
      return;
    }
}

void repeat_or_give_up(ManagementPort& port, Clock::time_point now) {
  for (Request& request : port.waiting) {
    if (request.until > now) continue;
    if (request.retries-- > 0) {
      request.until = now + request.timeout;
      send_to(port, destination(request.to, false), request.mad);
    } else {
      port.received.push_back({request.agent, ETIMEDOUT, request.to, request.mad});
    }
  }
  std::erase_if(port.waiting, [](const Request& request) { return request.retries < 0; });
}

// Waits until something was received; 0, or -ETIMEDOUT. A negative time: for ever.
int wait_for_one(ManagementPort& port, int timeout_ms) {
  const auto end = timeout_ms < 0 ? Clock::time_point::max() : Clock::now() + milliseconds(timeout_ms);
  while (true) {
    Clock::time_point next = end;
    {
      const std::lock_guard lock(port.mutex);
      const auto now = Clock::now();
      repeat_or_give_up(port, now);
      if (!port.received.empty()) return 0;
      if (now >= end) return -ETIMEDOUT;
      for (const Request& request : port.waiting) next = std::min(next, request.until);
    }
    constexpr milliseconds look_again{1000};  // another thread may have sent meanwhile
    const auto wait =
        std::chrono::ceil<milliseconds>(std::min<Clock::duration>(next - Clock::now(), look_again));
    pollfd socket{port.socket, POLLIN, 0};
    const int ready = ::poll(&socket, 1, static_cast<int>(std::max<long>(wait.count(), 0)));
    if (ready < 0 && errno == EINTR && timeout_ms >= 0) return -EINTR;
    const std::lock_guard lock(port.mutex);
    if (ready > 0) take_datagram(port);
  }
}

int register_agent(int number, std::uint8_t management_class, bool serves) {
  const auto port = port_at(number);
  if (!port) return -EINVAL;
  const std::lock_guard lock(port->mutex);
  const auto free = std::ranges::find(port->agents, false, &Agent::used);
  if (free == port->agents.end()) return -ENOMEM;
  if (serves) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_port = htons(management_port);
    // Another class of this port may serve already; another program may not.
    const bool bound = std::ranges::any_of(port->agents, &Agent::serves);
    if (!bound && ::bind(port->socket, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
      return -EBUSY;
  }
  *free = {management_class, serves, true};
  return static_cast<int>(free - port->agents.begin());
}

bool any_method(const long* mask) {
  return mask != nullptr && std::any_of(mask, mask + 16 / sizeof(long), [](long bits) { return bits != 0; });
}

}  // namespace

extern "C" {

struct umad_reg_attr {
  std::uint8_t mgmt_class, mgmt_class_version;
  std::uint32_t flags;
  std::uint64_t method_mask[2];
  std::uint32_t oui;
  std::uint8_t rmpp_version;
};

int umad_open_port(const char*, int) {
  auto port = std::make_shared<ManagementPort>();
  port->socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (port->socket < 0) return -EIO;
  const std::lock_guard lock(ports_mutex());
  ports()[port->socket] = port;
  return port->socket;
}

int umad_close_port(int number) {
  const std::lock_guard lock(ports_mutex());
  if (ports().erase(number) == 0) return -EINVAL;
  ::close(number);
  return 0;
}

int umad_register(int number, int management_class, int, std::uint8_t, long* methods) {
  return register_agent(number, static_cast<std::uint8_t>(management_class), any_method(methods));
}

int umad_register_oui(int number, int management_class, std::uint8_t, std::uint8_t*, long* methods) {
  return register_agent(number, static_cast<std::uint8_t>(management_class), any_method(methods));
}

int umad_register2(int number, umad_reg_attr* attributes, std::uint32_t* agent) {
  const bool serves = attributes->method_mask[0] != 0 || attributes->method_mask[1] != 0;
  const int made = register_agent(number, attributes->mgmt_class, serves);
  if (made < 0) return -made;  // this one's errors are positive
  *agent = static_cast<std::uint32_t>(made);
  return 0;
}

int umad_unregister(int number, int agent) {
  const auto port = port_at(number);
  if (!port || agent < 0 || agent >= static_cast<int>(max_agents)) return -EINVAL;
  const std::lock_guard lock(port->mutex);
  port->agents[static_cast<std::size_t>(agent)] = {};
  return 0;
}

int umad_send(int number, int agent, void* umad, int length, int timeout_ms, int retries) {
  const auto port = port_at(number);
  if (!port || agent < 0 || length < 0) return -EINVAL;
  const auto* const user = static_cast<const UserMad*>(umad);
  Mad mad{};
  std::memcpy(mad.data(), user->data, std::min<std::size_t>(static_cast<std::size_t>(length), mad.size()));
  const std::lock_guard lock(port->mutex);
  const auto as = static_cast<std::uint32_t>(agent);
  if (port->received.size() >= max_waiting || port->waiting.size() >= max_waiting) return -EIO;
  if (mad[1] == directed_class || mad[1] == routed_class) {
    const auto answer = answer_smp(subnet_now(), mad, ntohs(user->address.lid));
    port->received.push_back(
        {as, static_cast<std::uint32_t>(answer ? 0 : ETIMEDOUT), user->address, answer.value_or(mad)});
    return 0;
  }
  const bool is_response = (mad[3] & response_bit) != 0;
  send_to(*port, destination(user->address, is_response), mad);
  if (is_response || timeout_ms <= 0) return 0;
  const milliseconds timeout(timeout_ms);
  port->waiting.push_back({as, user->address, mad, timeout, std::max(retries, 0), Clock::now() + timeout});
  return 0;
}

int umad_poll(int number, int timeout_ms) {
  const auto port = port_at(number);
  return port ? wait_for_one(*port, timeout_ms) : -EINVAL;
}

// 0 ms means, as in libibumad, to wait without an end.
int umad_recv(int number, void* umad, int* length, int timeout_ms) {
  const auto port = port_at(number);
  if (!port || umad == nullptr || length == nullptr) {
    errno = EINVAL;
    return -EINVAL;
  }
  if (const int waited = wait_for_one(*port, timeout_ms == 0 ? -1 : timeout_ms); waited < 0) {
    errno = -waited;
    return waited;
  }
  const std::lock_guard lock(port->mutex);
  if (port->received.empty()) return -EAGAIN;  // another thread had it
  if (*length < static_cast<int>(mad_bytes)) {
    *length = mad_bytes;
    return -ENOSPC;
  }
  const Received received = port->received.front();
  port->received.pop_front();
  auto* const user = static_cast<UserMad*>(umad);
  std::memset(user, 0, sizeof *user);
  user->agent = received.agent;
  user->status = received.status;
  user->length = sizeof *user + mad_bytes;
  user->address = received.from;
  std::memcpy(user->data, received.mad.data(), mad_bytes);
  *length = mad_bytes;
  return static_cast<int>(received.agent);
}

}  // extern "C"
