// Another user of this host: tries what must be forbidden, and overdoes what is not.
//
// The attacker begins as root and becomes that user. It remembers the paths and processes that root saw: an
// attacker might guess them. What it must not be able to do ends it with an error, which the test reports.
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "link/default_directory.hpp"
#include "link/unique_fd.hpp"
#include "rpc/address.hpp"
#include "tests/bystander/misdeeds.hpp"
#include "wire/roce.hpp"

namespace weir::bystander::users {
namespace {

using link::UniqueFd;

constexpr std::size_t held_calls = 200;  // more than a process keeps of callers that say nothing

// What belongs to the attacked user.
struct Property {
  std::string folder;              // the runtime folder
  std::vector<std::string> paths;  // all in it
  std::vector<pid_t> processes;    // the server, and the one in which its clients are
  std::vector<std::string> names;  // theirs in the abstract space
  std::uint16_t port = 0;          // the server's; 0: none
};

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> all;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;)
      if (child != ::getpid()) all.push_back(child);
  }
  return all;
}

// Weir's names in the abstract space, as the kernel lists them for everybody.
std::vector<std::string> names() {
  std::vector<std::string> all;
  std::ifstream list("/proc/net/unix");
  for (std::string line; std::getline(list, line);)
    if (const std::size_t at = line.find(" @weir-"); at != std::string::npos)
      all.push_back(line.substr(at + 2));
  return all;
}

Property look_around(const std::string& address) {
  Property all;
  all.folder = link::default_runtime_directory(std::getenv("WEIR_RUNTIME_DIR"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(all.folder))
    all.paths.push_back(entry.path().string());
  all.processes = children_of(::getppid());
  all.processes.push_back(::getppid());
  all.names = names();
  all.port = rpc::parse_address(address)->port;
  if (all.paths.empty() || all.processes.size() < 2 || all.names.empty())
    throw std::runtime_error("nothing to attack in " + all.folder);
  return all;
}

void become_another_user() {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(another_user, another_user, another_user) != 0 ||
      ::setresuid(another_user, another_user, another_user) != 0)
    throw std::runtime_error("cannot become another user");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // which becoming another user ended
  ::setenv("WEIR_RUNTIME_DIR", std::getenv(folder_variable), 1);
}

void forbid(bool done, const std::string& what) {
  if (done) throw std::runtime_error("another user can " + what);
}

bool opens(const std::string& path, int flags) {
  return static_cast<bool>(UniqueFd(::open(path.c_str(), flags | O_CLOEXEC, 0600)));
}

bool connects(const std::string& path, int type) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof to.sun_path) return false;
  std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
  const UniqueFd socket(::socket(AF_UNIX, type, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

void try_folder(const Property& all) {
  forbid(opens(all.folder, O_RDONLY | O_DIRECTORY), "read the runtime folder");
  forbid(::rename(all.folder.c_str(), (all.folder + "-mine").c_str()) == 0, "move the runtime folder");
  forbid(::chmod(all.folder.c_str(), 0777) == 0, "open the runtime folder to others");
  forbid(opens(all.folder + "/anothers", O_CREAT | O_WRONLY), "write in the runtime folder");
  for (const std::string& path : all.paths) {
    forbid(opens(path, O_RDONLY), "read " + path);
    forbid(opens(path, O_RDWR), "write " + path);
    forbid(::unlink(path.c_str()) == 0, "remove " + path);
    forbid(connects(path, SOCK_SEQPACKET) || connects(path, SOCK_STREAM), "connect to " + path);
  }
}

void try_process(pid_t pid) {
  const std::string files = "/proc/" + std::to_string(pid) + "/";
  forbid(::kill(pid, 0) == 0, "send signals to a process");
  for (const char* file : {"mem", "environ", "maps", "fd/0"})
    forbid(opens(files + file, O_RDONLY), std::string("read ") + file + " of a process");
  char byte = 0;
  iovec here{&byte, 1}, there{&byte, 1};
  forbid(::process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0 || errno != EPERM, "read its memory");
  forbid(::process_vm_writev(pid, &here, 1, &there, 1, 0) >= 0 || errno != EPERM, "write its memory");
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (handle) forbid(::syscall(SYS_pidfd_getfd, handle.get(), 0, 0) >= 0, "take a process's descriptors");
}

// Sharing a port would mean to get some of its connections or packets.
bool binds(int family, int type, std::uint16_t port, const in6_addr& at6, in_addr_t at4) {
  const UniqueFd socket(::socket(family, type, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in6 v6{.sin6_family = AF_INET6,
                  .sin6_port = htons(port),
                  .sin6_flowinfo = 0,
                  .sin6_addr = at6,
                  .sin6_scope_id = 0};
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {at4}, .sin_zero = {}};
  const bool six = family == AF_INET6;
  const auto* at = six ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  return ::bind(socket.get(), at, six ? sizeof v6 : sizeof v4) == 0 &&
         (type == SOCK_DGRAM || ::listen(socket.get(), 8) == 0);
}

void try_ports(const Attack& attack, const Property& all) {
  for (const in_addr_t at : {INADDR_ANY, INADDR_LOOPBACK}) {
    forbid(binds(AF_INET, SOCK_DGRAM, weir::wire::roce_port, in6addr_any, htonl(at)),
           "share the NIC's UDP port");
    if (attack.over("tcp:") || attack.over("tls:"))
      forbid(binds(AF_INET, SOCK_STREAM, all.port, in6addr_any, htonl(at)), "share the server's port");
  }
  for (const in6_addr& at : {in6addr_any, in6addr_loopback})
    forbid(binds(AF_INET6, SOCK_DGRAM, weir::wire::roce_port, at, 0), "share the NIC's UDP port");
}

struct NameAddress {
  explicit NameAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t bytes = 0;
};

UniqueFd name_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Calls a process by its name, and says nothing, nonsense, or half of something.
UniqueFd call(Attack& attack, const std::string& name) {
  UniqueFd socket = name_socket();
  const NameAddress to(name);
  if (::connect(socket.get(), to.get(), to.bytes) != 0) return socket;
  std::array<std::byte, 3000> nonsense;
  for (std::byte& byte : nonsense) byte = static_cast<std::byte>(attack.random());
  for (std::uint64_t messages = attack.below(4); messages > 0; --messages)
    ::send(socket.get(), nonsense.data(), attack.below(nonsense.size()), MSG_NOSIGNAL);
  return socket;
}

// A free name of a slot, in which no process is then.
UniqueFd take_slot(Attack& attack) {
  UniqueFd socket = name_socket();
  const NameAddress free("weir-slot-" + std::to_string(1 + attack.below(1023)));
  if (::bind(socket.get(), free.get(), free.bytes) == 0) ::listen(socket.get(), 1);
  return socket;
}

asio::awaitable<void> use_rdma(Attack& attack) {
  for (;;) {
    const LinePtr line = co_await dial(attack.io, attack.protocol, attack.address);
    attack.did();
    asio::steady_timer timer(attack.io, std::chrono::milliseconds(attack.below(5)));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

}  // namespace

asio::awaitable<void> be_another_user(Attack& attack) {
  const Property all = look_around(attack.address);
  become_another_user();
  if (attack.over("rdma")) {
    asio::co_spawn(attack.io, use_rdma(attack), [](const std::exception_ptr& thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
  }
  std::deque<UniqueFd> held;
  for (;;) {
    try_folder(all);
    for (const pid_t process : all.processes) try_process(process);
    try_ports(attack, all);
    for (const std::string& name : all.names) {
      held.push_back(call(attack, name));
      if (attack.below(4) == 0) held.push_back(take_slot(attack));
      while (held.size() > held_calls) held.pop_front();
      attack.did();
    }
    asio::steady_timer timer(attack.io, std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

}  // namespace weir::bystander::users
