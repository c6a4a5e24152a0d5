#include "cli/weir/stat/nic_watch.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <array>
#include <cstring>
#include <fstream>

namespace weir::command {

struct NicWatch::Calls {
  decltype(&::weir_monitor_open) open;
  decltype(&::weir_monitor_look) look;
  decltype(&::weir_monitor_close) close;
};

namespace {

std::string command_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  // A program names itself as it likes: what a terminal would obey is not shown.
  for (char& c : name)
    if (c < ' ' || c > '~') c = '?';
  return name.empty() ? "?" : name;
}

// A watched process takes two descriptors (its connection, its end): the 1024 that a shell allows are spent
// on the 508th, and a slot directory has room for 1023.
void open_as_many_files_as_may_be() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// RoCE v2: an IPv6 address is its own GID, an IPv4 address is the mapped form.
std::string address_of(const std::uint8_t (&gid)[16]) {
  in6_addr v6;
  std::memcpy(&v6, gid, sizeof v6);
  if (IN6_IS_ADDR_UNSPECIFIED(&v6)) return "";
  const bool v4 = IN6_IS_ADDR_V4MAPPED(&v6);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(v4 ? AF_INET : AF_INET6, gid + (v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

WatchedProcess copy_of(const verbs::ProcessSeen& seen) {
  WatchedProcess process{
      seen.pid, seen.pid != 0 ? command_of(seen.pid) : "?", seen.slot, seen.incarnation, seen.sums, {}};
  for (std::uint64_t i = 0; i < seen.queue_pair_count; ++i) {
    const verbs::QueuePairSeen& qp = seen.queue_pairs[i];
    process.queue_pairs.push_back(
        {qp.number, qp.peer_number, qp.type, qp.state, qp.counters, address_of(qp.peer_gid)});
  }
  return process;
}

}  // namespace

void NicWatch::Close::operator()(verbs::Monitor* monitor) const { calls->close(monitor); }

NicWatch::NicWatch(std::shared_ptr<const Calls> calls, verbs::Monitor* monitor)
    : calls_(std::move(calls)), monitor_(monitor, Close{calls_.get()}) {}

std::expected<NicWatch, std::string> NicWatch::open(const std::string& library_directory) {
  open_as_many_files_as_may_be();
  const auto file = library_directory + "/libibverbs.so.1";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded: it has threads
  if (!library) return std::unexpected(std::string("cannot load ") + file + ": " + ::dlerror());
  auto calls = std::make_shared<Calls>();
  const auto take = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(::dlsym(library, name));
    return call != nullptr;
  };
  if (!take(calls->open, "weir_monitor_open") || !take(calls->look, "weir_monitor_look") ||
      !take(calls->close, "weir_monitor_close"))
    return std::unexpected(file + " shows no counters: is it this version's libibverbs of Weir?");
  std::array<char, 512> why{};
  verbs::Monitor* const monitor = calls->open(nullptr, why.data(), why.size());
  if (monitor == nullptr) return std::unexpected(std::string(why.data()));
  return NicWatch(std::move(calls), monitor);
}

Sample NicWatch::look() {
  Sample sample{std::chrono::steady_clock::now(), {}, 0};
  const auto visit = [](void* into, const verbs::ProcessSeen* seen) {
    if (seen->bytes == sizeof *seen) static_cast<Sample*>(into)->processes.push_back(copy_of(*seen));
  };
  sample.silent = calls_->look(monitor_.get(), visit, &sample);
  return sample;
}

}  // namespace weir::command
