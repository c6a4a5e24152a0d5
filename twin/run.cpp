#include "twin/run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

#include "fabric/sim/random.hpp"
#include "fabric/sim/summary.hpp"
#include "link/unique_fd.hpp"
#include "twin/captures.hpp"

namespace weir::twin {
namespace {

using link::fabric::Arena;
namespace sim = fabric::sim;

// Doubled as often as a run is long.
constexpr Ticks first_sample_interval = sim::ticks_per_us;

constexpr std::string_view folder_prefix = "weir-twin-", owner_file = "owner";

// A run that was killed could not remove its folder. A file in it has the number of its process.
void remove_what_killed_runs_left(const std::filesystem::path& in) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(in, ignored)) {
    if (!entry.path().filename().string().starts_with(folder_prefix)) continue;
    std::ifstream file(entry.path() / owner_file);
    pid_t owner = 0;
    struct stat found{};
    if (!(file >> owner) || owner <= 0 || ::stat(entry.path().c_str(), &found) != 0) continue;
    if (found.st_uid == ::geteuid() && ::kill(owner, 0) != 0 && errno == ESRCH)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

class Folder {
 public:
  Folder() {
    // Not /dev/shm, of which each host has its own.
    const char* const given = ::secure_getenv("TMPDIR");
    const std::string in = given != nullptr ? given : "/tmp";
    remove_what_killed_runs_left(in);
    std::string pattern = in + "/" + std::string(folder_prefix) + "XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) return;
    path_ = pattern;
    std::ofstream(std::filesystem::path(path_) / owner_file) << ::getpid();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class ArenaFile {
 public:
  ArenaFile() : file_(::memfd_create("weir-twin", MFD_CLOEXEC)) {
    if (!file_ || ::ftruncate(file_.get(), sizeof(Arena)) != 0) return;
    void* const at = ::mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (at != MAP_FAILED) arena_ = static_cast<Arena*>(at);
  }
  ~ArenaFile() {
    if (arena_ != nullptr) ::munmap(arena_, sizeof(Arena));
  }
  ArenaFile(const ArenaFile&) = delete;
  ArenaFile& operator=(const ArenaFile&) = delete;
  Arena* get() const { return arena_; }
  int descriptor() const { return file_.get(); }

 private:
  link::UniqueFd file_;
  Arena* arena_ = nullptr;
};

volatile std::sig_atomic_t came = 0;

// While it lives, signals that would end the process end the run instead, and its folder is removed.
class SignalsCaught {
 public:
  SignalsCaught() {
    struct sigaction action{};
    action.sa_handler = [](int signal) { came = signal; };
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &action, &before_[i]);
  }
  ~SignalsCaught() {
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
  }
  SignalsCaught(const SignalsCaught&) = delete;
  SignalsCaught& operator=(const SignalsCaught&) = delete;

 private:
  static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, signals.size()> before_{};
};

// Only what must not be zero: the rest of the file stays untouched, and takes no memory.
void begin(Arena& arena, const Scenario& scenario, std::uint64_t seed) {
  arena.magic = Arena::current_magic;
  arena.seed = seed;
  arena.tsc_mhz = 2000;
  arena.tcp_latency = scenario.tcp_latency;
  for (auto& thread : arena.threads)
    thread.deadline = thread.ready_at = thread.look_at = link::fabric::no_time;
  for (auto& process : arena.processes) {
    process.packet_thread = ~0u;
    process.timer_due = process.alarm_due = link::fabric::no_time;
  }
}

// All on one processor: a hand-over between two sleeping ones costs five times as much.
void stay_on_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

void add_ports(const sim::Simulation& simulation, Outcome& outcome) {
  const auto& fabric = simulation.fabric();
  for (std::uint32_t p = 0; p < fabric.ports.size(); ++p) {
    PortSums sums{.node = fabric.nodes[fabric.ports[p].node].name, .port = fabric.ports[p].name};
    for (unsigned priority = 0; priority < sim::priorities; ++priority) {
      const auto& queue = simulation.queue(p, priority);
      sums.packets += queue.sent_packets;
      sums.bytes += queue.sent_bytes;
      sums.marked += queue.marked;
      sums.dropped += queue.dropped;
      const std::uint64_t pauses = simulation.pfc(p, priority).received_xoff;
      const Ticks paused = simulation.paused_time(p, priority);
      sums.pauses_received += pauses;
      sums.paused += paused;
      if (pauses == 0) continue;
      const auto& peer = fabric.ports[fabric.ports[p].peer];
      outcome.pauses.push_back({.paused = sums.node + ":" + sums.port,
                                .by = fabric.nodes[peer.node].name + ":" + peer.name,
                                .priority = static_cast<std::uint8_t>(priority),
                                .frames = pauses,
                                .time = paused});
    }
    if (sums.packets != 0 || sums.pauses_received != 0) outcome.ports.push_back(std::move(sums));
  }
}

void add_incidents(const sim::Simulation& simulation, Outcome& outcome) {
  const auto& fabric = simulation.fabric();
  const auto text_of = [](sim::Incident::Kind kind) {
    switch (kind) {
      case sim::Incident::Kind::deadlock:
        return "PFC deadlock:";
      case sim::Incident::Kind::storm_detected:
        return "the watchdog detected a PFC storm at";
      case sim::Incident::Kind::storm_over:
        return "the PFC storm is over at";
      case sim::Incident::Kind::link_down:
        return "link down:";
      case sim::Incident::Kind::link_up:
        return "link up:";
    }
    return "";
  };
  for (const auto& incident : simulation.incidents()) {
    std::string line = fmt::format("{:.3f} us: {}", sim::to_us(incident.time), text_of(incident.kind));
    for (const std::uint32_t port : incident.ports)
      line += fmt::format(" {}:{}", fabric.nodes[fabric.ports[port].node].name, fabric.ports[port].name);
    outcome.incidents.push_back(std::move(line));
  }
}

std::string report_of(const Scenario& scenario, const sim::Simulation& simulation) {
  sim::RunTitle title{.name = scenario.network.name,
                      .file = {},
                      .settings = {},
                      .workloads = {},
                      .network = scenario.network.network.get(),
                      .ports_file = {},
                      .program = "weir fabric run"};
  for (const Program& program : scenario.programs)
    title.workloads.push_back(program.name + " on " + program.host);
  return sim::html_report(simulation, sim::summarize(simulation, false), title);
}

// Of a packet's bytes, four words at a time: every byte of every packet goes through here.
std::uint64_t digest(std::span<const std::byte> bytes) {
  constexpr std::size_t lanes = 4, word = sizeof(std::uint64_t);
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::array<std::uint64_t, lanes> sums{1, 2, 3, 4}, words{};
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), lanes * word))) {
    if (bytes.size() < sizeof words) words = {};
    std::memcpy(words.data(), bytes.data(), std::min(bytes.size(), sizeof words));
    for (std::size_t i = 0; i < lanes; ++i) sums[i] = std::rotl((sums[i] ^ words[i]) * odd, 29);
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all = sim::mix(all ^ sum);
  return all;
}

std::string status_text(const ProgramResult& result) {
  if (!result.ended) return "had not ended";
  if (WIFEXITED(result.status)) return fmt::format("exit status {}", WEXITSTATUS(result.status));
  return fmt::format("ended by signal {} ({})", WTERMSIG(result.status),
                     ::strsignal(WTERMSIG(result.status)));
}

std::string first_different_line(const std::string& first, const std::string& second) {
  std::size_t line = 1, at = 0;
  while (at < first.size() && at < second.size() && first[at] == second[at])
    if (first[at++] == '\n') ++line;
  const auto line_at = [&](const std::string& text) {
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  return fmt::format("line {}:\n  first:  {}\n  second: {}", line, line_at(first), line_at(second));
}

}  // namespace

std::expected<Outcome, std::string> run_once(const Scenario& scenario, const RunOptions& options) {
  const SignalsCaught signals;
  const Folder folder;
  if (folder.path().empty())
    return std::unexpected(fmt::format("cannot make a folder in $TMPDIR or /tmp: {}", std::strerror(errno)));
  const ArenaFile file;
  if (file.get() == nullptr)
    return std::unexpected(
        fmt::format("cannot make the memory that programs share: {}", std::strerror(errno)));
  Arena& arena = *file.get();
  begin(arena, scenario, options.seed);

  sim::Knobs knobs = scenario.network.knobs;
  knobs.seed = options.seed;
  knobs.duration_ns = sim::longest_run_ns;
  knobs.deadlock_check_ns = 0;
  auto prepared = sim::prepare(scenario.network, knobs);
  prepared.experiment.sample_interval = options.report ? first_sample_interval : 0;
  prepared.experiment.deadlock_check = 0;
  sim::Simulation simulation(prepared.fabric, prepared.experiment);
  std::optional<Captures> captures;
  if (!options.captures.empty()) {
    auto made = Captures::make(options.captures, prepared.fabric);
    if (!made) return std::unexpected(made.error());
    captures = std::move(*made);
  }

  auto processes = Processes::make(scenario, {.folder = folder.path(),
                                              .arena = file.descriptor(),
                                              .weir = options.weir,
                                              .mtu_bytes = prepared.experiment.transport.mtu_bytes});
  if (!processes) return std::unexpected(processes.error());
  stay_on_one_processor();

  Outcome outcome;
  std::vector<std::uint64_t> digests(link::fabric::slot_count);
  LiveNetwork network(arena, simulation, scenario, processes->addresses(), options.seed);
  network.watch([&](Ticks at, std::uint32_t host, bool arriving, const link::fabric::PacketRecord& packet) {
    const std::uint64_t where = at ^ std::uint64_t{host} << 48 ^ std::uint64_t{arriving} << 63;
    std::uint64_t& bytes = digests[packet.slot];  // nothing changes them on their way
    if (!arriving) bytes = digest(std::span(arena.slots[packet.slot]).first(packet.bytes));
    const std::uint64_t what = bytes ^ std::uint64_t{packet.traffic_class} << 16 ^ packet.bytes;
    outcome.fingerprint = sim::mix(outcome.fingerprint ^ sim::mix(where) ^ what);
  });
  if (captures)
    network.watch_ports(
        [&](std::uint32_t port, Ticks at, const link::fabric::PacketRecord& packet, bool marked) {
          captures->add(port, at, packet, marked, std::span(arena.slots[packet.slot]).first(packet.bytes));
        });
  Coordinator coordinator(arena, network, *processes, scenario);
  coordinator.end_when(came);
  coordinator.stop_at(options.stop_at, options.stopped);
  auto run = coordinator.run();
  if (!run) return std::unexpected(run.error());
  outcome.run = std::move(*run);
  for (std::uint32_t i = 0; i < scenario.programs.size(); ++i)
    outcome.outputs.push_back(processes->output(i));
  outcome.packets = network.counts();
  outcome.pfc_frames = simulation.totals().pfc_frames;
  add_ports(simulation, outcome);
  add_incidents(simulation, outcome);
  if (options.report) outcome.report = report_of(scenario, simulation);
  if (captures)
    if (auto written = captures->finish(); !written) return std::unexpected(written.error());
  return outcome;
}

std::string first_difference(const Scenario& scenario, const Outcome& first, const Outcome& second) {
  for (std::size_t i = 0; i < scenario.programs.size(); ++i) {
    const auto& program = scenario.programs[i];
    if (first.outputs[i] != second.outputs[i])
      return fmt::format("output of {} on {}, {}", program.name, program.host,
                         first_different_line(first.outputs[i], second.outputs[i]));
    if (first.run.programs[i].status != second.run.programs[i].status)
      return fmt::format("{} on {}: {}, and {}", program.name, program.host,
                         status_text(first.run.programs[i]), status_text(second.run.programs[i]));
  }
  if (first.run.end != second.run.end)
    return fmt::format("virtual end: {:.5f} us, and {:.5f} us", sim::to_us(first.run.end),
                       sim::to_us(second.run.end));
  if (first.fingerprint != second.fingerprint)
    return fmt::format("packets: fingerprint {:016x}, and {:016x}", first.fingerprint, second.fingerprint);
  return {};
}

std::string failure_of(const Scenario& scenario, const Outcome& outcome) {
  const std::string& early = outcome.run.ended_because;
  if (!early.empty()) return early.substr(0, early.find('\n'));
  for (std::size_t i = 0; i < scenario.programs.size(); ++i) {
    const ProgramResult& result = outcome.run.programs[i];
    if (!result.ended || result.status != 0)
      return fmt::format("{} on {}: {}", scenario.programs[i].name, scenario.programs[i].host,
                         status_text(result));
  }
  return {};
}

std::string summary(const Scenario& scenario, const Outcome& outcome) {
  std::string text;
  for (std::size_t i = 0; i < scenario.programs.size(); ++i) {
    const auto& program = scenario.programs[i];
    text += fmt::format("== {} on {}: {} at {:.3f} us\n{}", program.name, program.host,
                        status_text(outcome.run.programs[i]), sim::to_us(outcome.run.programs[i].at),
                        outcome.outputs[i]);
    if (!outcome.outputs[i].empty() && outcome.outputs[i].back() != '\n') text += '\n';
  }
  const auto& packets = outcome.packets;
  text += fmt::format(
      "== network\nvirtual time {:.3f} us, {} packets delivered of {} sent, {} marked, {} lost, {} PFC "
      "frames\n",
      sim::to_us(outcome.run.end), packets.delivered + packets.notifications, packets.sent, packets.marked,
      packets.lost + packets.refused, outcome.pfc_frames);
  if (packets.nowhere != 0)
    text += fmt::format("{} packets were for no host or no queue pair of this network\n", packets.nowhere);
  text += fmt::format("{:<16} {:>10} {:>14} {:>8} {:>8} {:>8} {:>12}\n", "port", "packets", "bytes", "marked",
                      "dropped", "pauses", "paused us");
  for (const auto& port : outcome.ports)
    text += fmt::format("{:<16} {:>10} {:>14} {:>8} {:>8} {:>8} {:>12.3f}\n", port.node + ":" + port.port,
                        port.packets, port.bytes, port.marked, port.dropped, port.pauses_received,
                        sim::to_us(port.paused));
  for (const auto& pause : outcome.pauses)
    text += fmt::format("{} paused {} {} times in priority {}, for {:.3f} us\n", pause.by, pause.paused,
                        pause.frames, pause.priority, sim::to_us(pause.time));
  for (const auto& line : outcome.incidents) text += line + "\n";
  if (packets.lost_on_purpose != 0)
    text += fmt::format("{} of the lost packets were lost on purpose ([[loss]])\n", packets.lost_on_purpose);
  if (!outcome.run.ended_because.empty()) {
    text += "ended early: " + outcome.run.ended_because + "\n";
  } else if (outcome.run.uncontrolled.empty()) {
    text += fmt::format("deterministic: nothing escaped control; fingerprint {:016x}\n", outcome.fingerprint);
  } else {
    text += "not deterministic:\n";
    for (const auto& line : outcome.run.uncontrolled) text += "  " + line + "\n";
  }
  if (outcome.run.spins != 0)
    text +=
        fmt::format("{} waits were loops on memory, each proved by its recurring state\n", outcome.run.spins);
  if (outcome.run.calls != 0)
    text += fmt::format("{} waits were calls of the kernel's, each seen from outside\n", outcome.run.calls);
  text += "computing takes no virtual time\n";
  return text;
}

}  // namespace weir::twin
