#include "twin/processes.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "link/fabric/arena.hpp"
#include "twin/hosts/enter_host.hpp"
#include "twin/hosts/network_plan.hpp"
#include "twin/hosts/running_network.hpp"

namespace weir::twin {

// Where programs find the arena: high, so that they do not get other numbers than usual for their own.
constexpr int arena_descriptor = 999;
// More than a program has under way: a full one would empty by the kernel's own clock.
constexpr std::uint32_t tcp_buffer_bytes = 8u << 20;

namespace {

// What a process or thread is called in the innermost of its PID namespaces; 0: it has ended.
std::int32_t number_inside(const std::filesystem::path& place) {
  std::ifstream status(place / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("NSpid:")) return std::atoi(line.c_str() + line.find_last_of(" \t"));
  return 0;
}

std::string pid_space_of(const std::filesystem::path& place) {
  std::error_code error;
  return std::filesystem::read_symlink(place / "ns/pid", error).string();
}

template <class Fits>
pid_t find_in(const std::filesystem::path& folder, Fits fits) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const int number = std::atoi(entry.path().filename().c_str());
    if (number > 0 && fits(entry.path())) return number;
  }
  return 0;
}

}  // namespace

std::expected<Processes, std::string> Processes::make(const Scenario& scenario, Options options) {
  std::vector<std::string> names;
  for (const auto& node : scenario.network.network->nodes)
    if (node.kind == fabric::NodeKind::host) names.push_back(node.name);
  hosts::NetworkPlan plan;
  plan.hosts = hosts::hosts_by_order(names);
  plan.title = scenario.network.name;
  plan.tcp_buffer_bytes = tcp_buffer_bytes;
  ::mkdir((options.folder + "/hosts").c_str(), 0700);
  auto keeper = hosts::start_network(plan, options.folder + "/hosts", hosts::Lifetime::with_this_process);
  if (!keeper) return std::unexpected(keeper.error().what);
  Processes made(std::move(*keeper), std::move(options));
  made.pids_.resize(scenario.programs.size());
  for (const auto& host : plan.hosts) {
    link::fabric::Address address{};
    address[10] = address[11] = 0xff;
    for (unsigned i = 0; i < 4; ++i) address[12 + i] = static_cast<std::uint8_t>(host.ipv4 >> (24 - 8 * i));
    made.addresses_.push_back(address);
    ::mkdir((made.options_.folder + "/" + host.name).c_str(), 0700);
  }
  return made;
}

Processes::~Processes() {
  for (const pid_t pid : pids_)
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
}

std::string Processes::output_file(std::uint32_t program) const {
  return options_.folder + "/output-" + std::to_string(program);
}

std::string Processes::output(std::uint32_t program) const {
  std::ifstream file(output_file(program), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::expected<void, std::string> Processes::start(const Scenario& scenario, std::uint32_t program) {
  const auto& host = scenario.programs[program].host;
  const auto found = hosts::find_host(options_.folder + "/hosts", host);
  if (!found) return std::unexpected(found.error().what);
  const auto child = hosts::fork_into(*found);
  if (!child) return std::unexpected(child.error().what);
  if (*child == 0) become(scenario, program);
  pids_[program] = *child;
  if (space_.empty()) space_ = pid_space_of("/proc/" + std::to_string(*child));
  return {};
}

pid_t Processes::number_of(std::uint32_t inside) const {
  return find_in("/proc", [&](const std::filesystem::path& place) {
    return number_inside(place) == static_cast<std::int32_t>(inside) && pid_space_of(place) == space_;
  });
}

pid_t Processes::thread_of(pid_t process, std::int32_t inside) {
  return find_in("/proc/" + std::to_string(process) + "/task",
                 [&](const std::filesystem::path& place) { return number_inside(place) == inside; });
}

bool Processes::has_ended(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return true;
  // Behind the name, which may have any characters: the state, and 17 fields later the number of threads. A
  // process whose first thread has ended before others is a zombie for which nobody can wait.
  constexpr int between = 16;
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string state, skipped;
  long threads = 0;
  fields >> state;
  for (int i = 0; i < between; ++i) fields >> skipped;
  fields >> threads;
  return state == "X" || (state == "Z" && threads <= 1);
}

bool Processes::is_starved(pid_t process, pid_t thread, std::chrono::seconds limit) {
  const std::string place = "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread);
  std::ifstream times(place + "/schedstat"), stat(place + "/stat");
  std::int64_t used_ns = 0;
  std::string line;
  if (!(times >> used_ns) || !std::getline(stat, line)) return false;
  const auto state = line.rfind(") ") + 2;
  return state < line.size() && line[state] == 'R' && std::chrono::nanoseconds(used_ns) < limit;
}

void Processes::become(const Scenario& scenario, std::uint32_t number) {
  const Program& program = scenario.programs[number];
  hosts::set_host_variables(options_.folder + "/hosts", program.host);
  const std::string arena = "/proc/self/fd/" + std::to_string(arena_descriptor);
  ::setenv(link::fabric::arena_variable, arena.c_str(), 1);
  ::setenv(link::fabric::program_variable, std::to_string(number).c_str(), 1);
  ::setenv(link::fabric::host_variable, std::to_string(program.address).c_str(), 1);
  ::setenv("WEIR_RUNTIME_DIR", (options_.folder + "/" + program.host).c_str(), 1);
  // OpenSSL asks the processor for random numbers, past the C library: not RDRAND, not RDSEED.
  ::setenv("OPENSSL_ia32cap", "~0x4000000000000000:~0x40000", 0);
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out =
      ::open(output_file(number).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (::dup2(options_.arena, arena_descriptor) < 0) ::_exit(126);
  if (in < 0 || out < 0 || ::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0) ::_exit(126);
  ::personality(ADDR_NO_RANDOMIZE);  // refused: addresses differ from run to run
  std::vector<std::string> words{options_.weir, "run", "--mtu", std::to_string(options_.mtu_bytes), "--"};
  words.insert(words.end(), program.command.begin(), program.command.end());
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(options_.weir.c_str(), pointers.data());
  std::fprintf(stderr, "weir fabric: cannot run %s: %s\n", options_.weir.c_str(), std::strerror(errno));
  ::_exit(126);
}

std::vector<Ended> Processes::reap() {
  std::vector<Ended> ended;
  for (std::uint32_t i = 0; i < pids_.size(); ++i) {
    int status = 0;
    if (pids_[i] <= 0 || ::waitpid(pids_[i], &status, WNOHANG) != pids_[i]) continue;
    ended.push_back({i, std::exchange(pids_[i], 0), status});
  }
  return ended;
}

}  // namespace weir::twin
