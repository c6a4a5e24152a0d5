#include "link/abstract_socket.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>

namespace weir::link {
namespace {

struct AbstractAddress {
  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    const std::size_t room = sizeof address.sun_path - 1;
    const std::size_t length = name.size() < room ? name.size() : room;
    std::memcpy(address.sun_path + 1, name.data(), length);  // after a zero byte: an abstract name
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t bytes = 0;
};

// Numbers of Linux 5.3, which older headers do not have.
constexpr std::uint16_t unix_diag_uid = 7;
constexpr std::uint32_t udiag_show_uid = 0x40;

UniqueFd seqpacket_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

std::expected<UniqueFd, int> hold_name(const std::string& name) {
  UniqueFd socket = seqpacket_socket();
  const AbstractAddress address(name);
  if (!socket || ::bind(socket.get(), address.get(), address.bytes) != 0) return std::unexpected(errno);
  return socket;
}

std::expected<UniqueFd, int> connect_to_name(const std::string& name) {
  UniqueFd socket = seqpacket_socket();
  const AbstractAddress address(name);
  if (!socket || ::connect(socket.get(), address.get(), address.bytes) != 0) return std::unexpected(errno);
  return socket;
}

namespace {

// The attributes of one socket of the answer.
struct HeldName {
  std::string_view name;
  std::optional<uid_t> user;
};
HeldName read_attributes(const nlmsghdr& message) {
  HeldName held;
  const auto* const body = reinterpret_cast<const char*>(&message) + NLMSG_LENGTH(0);
  auto* attribute = reinterpret_cast<const rtattr*>(body + NLMSG_ALIGN(sizeof(unix_diag_msg)));
  auto left = static_cast<int>(message.nlmsg_len) - static_cast<int>(NLMSG_LENGTH(sizeof(unix_diag_msg)));
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    const auto* const value = static_cast<const char*>(RTA_DATA(attribute));
    if (attribute->rta_type == UNIX_DIAG_NAME) held.name = {value, RTA_PAYLOAD(attribute)};
    if (attribute->rta_type == unix_diag_uid && RTA_PAYLOAD(attribute) == sizeof(uid_t)) {
      uid_t user = 0;
      std::memcpy(&user, value, sizeof user);
      held.user = user;
    }
  }
  return held;
}

bool ask_for_names(int socket) {
  struct {
    nlmsghdr header;
    unix_diag_req body;
  } request{};
  request.header = {.nlmsg_len = sizeof request,
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                    .nlmsg_seq = 1,
                    .nlmsg_pid = 0};
  request.body.sdiag_family = AF_UNIX;
  request.body.udiag_states = UINT32_MAX;
  request.body.udiag_show = UDIAG_SHOW_NAME | udiag_show_uid;
  return ::send(socket, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request);
}

// Each abstract name of this network namespace, without its zero byte, and whose it is.
template <class Visit>
void for_each_abstract_name(Visit visit) {
  constexpr int most_answers = 10'000;  // each has dozens of sockets
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket || !ask_for_names(socket.get())) return;
  alignas(nlmsghdr) std::array<char, 32'768> answer;
  for (int i = 0; i < most_answers; ++i) {
    // The kernel answers at once, inside this call.
    auto left = ::recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT);
    if (left <= 0) return;
    for (auto* message = reinterpret_cast<const nlmsghdr*>(answer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY) return;  // the end, or an error
      HeldName held = read_attributes(*message);
      if (!held.user || !held.name.starts_with('\0')) continue;
      held.name.remove_prefix(1);
      visit(held.name, *held.user);
    }
  }
}

}  // namespace

std::vector<std::string> names_of_user(uid_t user, std::string_view prefix) {
  std::vector<std::string> names;
  if (user == nobody_known) return names;
  for_each_abstract_name([&](std::string_view name, uid_t holder) {
    if (holder == user && name.starts_with(prefix)) names.emplace_back(name);
  });
  return names;
}

std::optional<NameHolder> largest_other_holder(uid_t own, std::string_view prefix) {
  struct Held {
    std::string name;  // one of them
    std::size_t names = 0;
  };
  std::map<uid_t, Held> holders;
  for_each_abstract_name([&](std::string_view name, uid_t holder) {
    if (holder == own || !name.starts_with(prefix)) return;
    Held& held = holders[holder];
    held.name = name;
    ++held.names;
  });
  const auto largest =
      std::ranges::max_element(holders, {}, [](const auto& holder) { return holder.second.names; });
  if (largest == holders.end()) return std::nullopt;
  NameHolder found{.user = largest->first, .names = largest->second.names};
  if (const auto socket = connect_to_name(largest->second.name))
    if (const auto who = identity_of_peer(socket->get())) found.pid = who->pid;
  return found;
}

std::string name_of_slot(unsigned slot) { return slot_name_prefix + std::to_string(slot); }

#ifndef SO_PEERPIDFD  // Linux 6.5; Debian 12's C library lacks it
#define SO_PEERPIDFD 77
#endif

std::expected<UniqueFd, int> pidfd_of_peer(int socket) {
  int descriptor = -1;
  socklen_t size = sizeof descriptor;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &size) != 0) return std::unexpected(errno);
  return UniqueFd(descriptor);
}

namespace {

constexpr auto pid_file_system = 0x50494446;  // PID_FS_MAGIC, Linux 6.9

// The inode of the other end's pidfd. Before that file system all pidfds had one.
std::uint64_t unique_number_of_peer(int socket) {
  const auto process = pidfd_of_peer(socket);
  struct statfs system{};
  struct stat file{};
  const bool known = process && ::fstatfs(process->get(), &system) == 0 && system.f_type == pid_file_system &&
                     ::fstat(process->get(), &file) == 0;
  return known ? file.st_ino : 0;
}

}  // namespace

std::expected<Identity, int> identity_of_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::unexpected(errno);
  return Identity{peer.uid, peer.pid, unique_number_of_peer(socket)};
}

bool same_process(const Identity& one, const Identity& other) {
  if (one.unique != 0 && other.unique != 0) return one.unique == other.unique;
  const bool one_user = one.user == other.user && one.user != nobody_known;
  // Only of a process that has ended, before Linux 6.16, the kernel does not tell what it tells of others.
  if (one.unique != other.unique && !one_user) return false;
  return one.pid != 0 && other.pid != 0 ? one.pid == other.pid : one_user;
}

}  // namespace weir::link
