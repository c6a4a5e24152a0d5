#include "twin/hosts/first_process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "twin/hosts/descriptors.hpp"
#include "twin/hosts/folder.hpp"
#include "twin/hosts/host_maker.hpp"
#include "twin/hosts/requests.hpp"

namespace weir::hosts {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t max_clients = 64;
constexpr milliseconds grace{2000};  // from SIGTERM to SIGKILL when the network ends

struct Host {
  HostNamespaces namespaces;
  std::uint64_t network_inode = 0;
};

// Whether a program of the hosts has not ended yet. One that has, and that its parent outside has not reaped,
// does not count.
bool any_alive() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string number = entry.path().filename();
    if (number == "1" || number.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat;
    std::getline(std::ifstream(entry.path() / "stat"), stat);
    const std::size_t name_end = stat.rfind(')');
    if (name_end != std::string::npos && stat.compare(name_end, 3, ") Z") != 0) return true;
  }
  return false;
}

class FirstProcess {
 public:
  FirstProcess(const NetworkPlan& plan, std::string folder, const Inherited& inherited)
      : plan_(plan), folder_(std::move(folder)), inherited_(inherited) {}

  Result<void> make_hosts();
  [[noreturn]] void serve();

 private:
  void accept_clients();
  void answer(link::UniqueFd& client);
  std::string answer_to(const Request& request, std::vector<int>& descriptors);
  std::optional<std::size_t> find_cable(const std::string& one, const std::string& other) const;
  std::string plug(std::size_t cable, bool in);
  void write_topology() const;
  Listing listing() const;
  [[noreturn]] void end(link::UniqueFd asked_by);
  void reap();

  const NetworkPlan& plan_;
  std::string folder_;
  Inherited inherited_;
  link::UniqueFd signals_, users_, processes_;
  std::optional<HostMaker> maker_;
  std::vector<Host> hosts_;
  std::vector<bool> plugged_;  // each cable
  std::vector<link::UniqueFd> clients_;
};

Result<void> FirstProcess::make_hosts() {
  // Four descriptors a host.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  sigset_t handled;
  ::sigemptyset(&handled);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&handled, number);
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  signals_.reset(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return failure_errno(errno, "a signalfd");

  auto maker = HostMaker::make(plan_, hosts_file_in(folder_));
  if (!maker) return std::unexpected(maker.error());
  maker_.emplace(std::move(*maker));
  for (const auto& [kind, fd] : {std::pair{users, &users_}, {processes, &processes_}}) {
    auto opened = own(kind);
    if (!opened) return std::unexpected(opened.error());
    *fd = std::move(*opened);
  }
  for (std::size_t index = 0; index < plan_.hosts.size(); ++index) {
    auto made = maker_->make_host(plan_, index);
    if (!made) return std::unexpected(made.error());
    struct stat status{};
    ::fstat((*made)[network].get(), &status);
    hosts_.push_back({std::move(*made), status.st_ino});
  }
  plugged_.assign(plan_.is_routed() ? plan_.cables.size() : hosts_.size(), true);
  write_topology();
  return maker_->join_switches(plan_);
}

void FirstProcess::reap() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD) end({});
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void FirstProcess::accept_clients() {
  while (clients_.size() < max_clients) {
    link::UniqueFd client(::accept4(inherited_.listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) return;
    // A listing of the most hosts there can be is one message; the system's limit may be lower than this.
    constexpr int room = 512 * 1024;
    ::setsockopt(client.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    clients_.push_back(std::move(client));
  }
}

Listing FirstProcess::listing() const {
  Listing listing{plan_.title, {}, {}};
  for (std::size_t index = 0; index < hosts_.size(); ++index)
    listing.hosts.push_back({plan_.hosts[index].name,
                             plan_.hosts[index].ipv4,
                             plugged_[index],
                             hosts_[index].network_inode,
                             {},
                             {}});
  for (std::size_t cable = hosts_.size(); cable < plugged_.size(); ++cable)
    listing.cables.push_back({plan_.name_of(plan_.cables[cable].a),
                              plan_.name_of(plan_.cables[cable].b),
                              plugged_[cable],
                              {},
                              {}});
  [[maybe_unused]] const auto counted =
      maker_->count_traffic(plan_, listing);  // zeros are better than no list
  return listing;
}

std::string FirstProcess::answer_to(const Request& request, std::vector<int>& descriptors) {
  if (request.kind == Request::Kind::list) return "ok\n" + text_of(listing());
  if (request.kind == Request::Kind::cables) return "ok\n" + text_of(listing().cables);
  if (!request.other.empty()) {
    const auto cable = find_cable(request.host, request.other);
    return cable ? plug(*cable, request.kind == Request::Kind::plug_in) : "no such cable";
  }
  const auto named = std::ranges::find(plan_.hosts, request.host, &HostPlan::name);
  if (named == plan_.hosts.end()) return "no such host";
  const auto index = static_cast<std::size_t>(named - plan_.hosts.begin());
  Host& host = hosts_[index];
  if (request.kind == Request::Kind::join) {
    descriptors = {users_.get(), processes_.get()};
    for (const Namespace kind : {network, mounts, hostname, ipc})
      descriptors.push_back(host.namespaces[kind].get());
    return "ok\n";
  }
  if (request.kind == Request::Kind::variables) return "ok\n" + text_of(plan_.variables, named->name);
  return plug(index, request.kind == Request::Kind::plug_in);
}

// The first between these two, in either order.
std::optional<std::size_t> FirstProcess::find_cable(const std::string& one, const std::string& other) const {
  for (std::size_t cable = 0; cable < plan_.cables.size(); ++cable) {
    const std::string &a = plan_.name_of(plan_.cables[cable].a), &b = plan_.name_of(plan_.cables[cable].b);
    if ((a == one && b == other) || (a == other && b == one)) return cable;
  }
  return std::nullopt;
}

std::string FirstProcess::plug(std::size_t cable, bool in) {
  plugged_[cable] = in;
  write_topology();
  const auto plugged = maker_->plug(plan_, cable, plugged_);
  return plugged ? "ok\n" : "no, " + plugged.error().what;
}

// For programs of the hosts. Whole at any time.
void FirstProcess::write_topology() const {
  const std::string file = topology_file_in(folder_), part = file + ".new";
  std::ofstream(part) << topology_file(plan_, plugged_);
  ::rename(part.c_str(), file.c_str());
}

void FirstProcess::answer(link::UniqueFd& client) {
  std::array<char, max_request_bytes + 1> bytes{};
  const ssize_t count = ::recv(client.get(), bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  link::UniqueFd answered = std::move(client);
  if (count <= 0) return;
  const auto request = read_request({bytes.data(), static_cast<std::size_t>(count)});
  if (request && request->kind == Request::Kind::end) end(std::move(answered));
  std::vector<int> descriptors;
  const std::string text = request ? answer_to(*request, descriptors) : "no, not a request";
  // A client that does not read gets nothing: the socket does not block.
  [[maybe_unused]] const bool sent = send_with_descriptors(answered.get(), text, descriptors);
}

// Programs get time to write what they have; the kernel kills what is left, when this process has ended.
void FirstProcess::end(link::UniqueFd asked_by) {
  vacate(folder_);
  ::kill(-1, SIGTERM);
  ::kill(-1, SIGCONT);
  const auto until = Clock::now() + grace;
  while (any_alive() && Clock::now() < until) {
    pollfd wait{signals_.get(), POLLIN, 0};
    ::poll(&wait, 1, 10);  // a program's parent, which reaps it, may be outside: then no signal says so
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  if (asked_by) [[maybe_unused]]
    const bool sent = send_with_descriptors(asked_by.get(), "ok\n", {});
  ::_exit(0);  // closes the connection
}

void FirstProcess::serve() {
  while (true) {
    std::vector<pollfd> watched{{signals_.get(), POLLIN, 0},
                                {inherited_.keeper, 0, 0},
                                {inherited_.lifeline, 0, 0},
                                {clients_.size() < max_clients ? inherited_.listening : -1, POLLIN, 0}};
    const std::size_t first_client = watched.size();
    for (const auto& client : clients_) watched.push_back({client.get(), POLLIN, 0});
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) reap();
    if (watched[1].revents != 0 || watched[2].revents != 0) end({});
    for (std::size_t index = 0; index < clients_.size(); ++index)
      if (watched[first_client + index].revents != 0) answer(clients_[index]);
    std::erase_if(clients_, [](const link::UniqueFd& client) { return !client; });
    if (watched[3].revents != 0) accept_clients();
  }
}

}  // namespace

void keep_hosts(const NetworkPlan& plan, const std::string& folder, const Inherited& inherited) {
  FirstProcess process(plan, folder, inherited);
  const auto made = process.make_hosts();
  const std::string report =
      made ? "made" : std::to_string(static_cast<int>(made.error().cause)) + " " + made.error().what;
  [[maybe_unused]] const auto sent = ::write(inherited.report, report.data(), report.size());
  ::close(inherited.report);
  if (!made) {
    vacate(folder);
    ::_exit(1);
  }
  process.serve();
}

}  // namespace weir::hosts
