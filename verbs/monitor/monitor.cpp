#include "verbs/monitor/monitor.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace weir::verbs {
namespace {

constexpr std::chrono::milliseconds answer_limit{200};

CountersSeen seen(const rnic::QpCounters& from) {
  using Kind = rnic::OperationKind;
  using Goes = rnic::PayloadGoes;
  const auto of = [](const auto& group, auto which) { return group[static_cast<std::size_t>(which)].read(); };
  return {.sends = of(from.operations, Kind::send),
          .writes = of(from.operations, Kind::write),
          .reads = of(from.operations, Kind::read),
          .atomics = of(from.operations, Kind::atomic),
          .local_operations = of(from.operations, Kind::local),
          .sends_served = of(from.served, Kind::send),
          .writes_served = of(from.served, Kind::write),
          .reads_served = of(from.served, Kind::read),
          .atomics_served = of(from.served, Kind::atomic),
          .bytes_out = of(from.payload, Goes::out),
          .bytes_back = of(from.payload, Goes::back),
          .served_bytes_in = of(from.served_payload, Goes::out),
          .served_bytes_out = of(from.served_payload, Goes::back),
          .datagram_bytes_in = from.datagram_bytes.read(),
          .doorbells = from.doorbells.read(),
          .receive_doorbells = from.receive_doorbells.read(),
          .send_completions = from.send_completions.read(),
          .receives = from.receives.read(),
          .own_wakeups = from.own_wakeups.read(),
          .receive_wakeups = from.receive_wakeups.read(),
          .rnrs = from.rnrs.read(),
          .no_responses = from.no_responses.read(),
          .retries = from.retries.read(),
          .send_errors = from.send_errors.read(),
          .receive_errors = from.receive_errors.read(),
          .sends_flushed = from.sends_flushed.read(),
          .receives_flushed = from.receives_flushed.read(),
          .datagrams_dropped = from.datagrams_dropped.read()};
}

// All of CountersSeen is numbers of one type.
void add(CountersSeen& to, const CountersSeen& what) {
  constexpr std::size_t words = sizeof(CountersSeen) / sizeof(std::uint64_t);
  auto* sum = reinterpret_cast<std::uint64_t*>(&to);
  const auto* one = reinterpret_cast<const std::uint64_t*>(&what);
  for (std::size_t i = 0; i < words; ++i) sum[i] += one[i];
}

const char* type_name(std::uint16_t type) {
  switch (static_cast<rnic::QpType>(type)) {
    case rnic::QpType::rc:
      return "RC";
    case rnic::QpType::uc:
      return "UC";
    case rnic::QpType::ud:
      return "UD";
    case rnic::QpType::raw_packet:
      return "raw packet";
    case rnic::QpType::xrc_send:
      return "XRC send";
    case rnic::QpType::xrc_recv:
      return "XRC receive";
  }
  return "?";
}

const char* state_name(std::uint32_t state) {
  constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state < std::size(names) ? names[state] : "?";
}

void read_once(const rnic::SegmentHeader& from, rnic::Slot slot, CountersSeen& sums,
               std::vector<QueuePairSeen>& queue_pairs) {
  queue_pairs.clear();
  sums = seen(from.counters.retired);
  const std::uint32_t end = std::min(from.counters.qps_end.load(std::memory_order_acquire), rnic::max_qps);
  for (std::uint32_t i = 0; i < end; ++i) {
    if (from.qp_exists[i].load(std::memory_order_acquire) == 0) continue;
    const rnic::QpContext& qp = from.qps[i];
    const bool connected = qp.type != static_cast<std::uint16_t>(rnic::QpType::ud);
    queue_pairs.push_back({rnic::Qpn(slot, i).value(),
                           connected ? qp.remote_qpn.load(std::memory_order_relaxed) : 0, type_name(qp.type),
                           state_name(qp.state.load(std::memory_order_relaxed)), seen(from.qp_counters[i])});
    add(sums, queue_pairs.back().counters);
  }
}

}  // namespace

ProcessSeen read_counters(const rnic::SegmentHeader& from, rnic::Slot slot,
                          std::vector<QueuePairSeen>& queue_pairs) {
  // A queue pair that is destroyed meanwhile would be counted twice or not at all, so look again; not for
  // ever, because its process may stand still right then.
  constexpr int tries = 100;
  ProcessSeen process{};
  for (int i = 0; i < tries; ++i) {
    const std::uint32_t before = from.counters.moving.load(std::memory_order_acquire);
    read_once(from, slot, process.sums, queue_pairs);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && from.counters.moving.load(std::memory_order_relaxed) == before) break;
  }
  process.bytes = sizeof process;
  process.slot = slot;
  process.queue_pairs = queue_pairs.data();
  process.queue_pair_count = queue_pairs.size();
  return process;
}

link::Result<std::unique_ptr<Monitor>> Monitor::open(std::string directory) {
  link::SameHostLink::Options options;
  options.directory = std::move(directory);
  auto attached = link::SameHostLink::attach(std::move(options));
  if (!attached) return std::unexpected(attached.error());
  return std::unique_ptr<Monitor>(new Monitor(std::move(*attached)));
}

Monitor::Watched* Monitor::watch(link::Slot slot, bool& silent) {
  if (const auto known = watched_.find(slot); known != watched_.end()) {
    if (known->second.neighbour->alive()) return &known->second;
    watched_.erase(known);
  }
  const auto neighbour = link_->connect(slot, answer_limit);
  if (!neighbour) {
    silent = neighbour.error().code != std::errc::no_such_device_or_address;
    return nullptr;
  }
  const link::Greeting& greeting = (*neighbour)->greeting();
  std::uint64_t magic = 0;
  if (greeting.fds.empty() || greeting.body.size() < sizeof magic) return nullptr;  // another monitor
  std::memcpy(&magic, greeting.body.data(), sizeof magic);
  const std::size_t bytes = link::file_bytes(greeting.fds[0].get());
  if (magic != rnic::segment_magic || bytes < rnic::segment_rings_offset) return nullptr;
  auto mapping =
      link::Mapping::of_file(greeting.fds[0].get(), sizeof(rnic::SegmentHeader), link::Mapping::Rights::read);
  if (!mapping) return nullptr;
  return &watched_.emplace(slot, Watched{*neighbour, std::move(*mapping)}).first->second;
}

int Monitor::look(Visit visit, void* with) {
  std::vector<link::Slot> slots = link_->occupied();
  std::ranges::sort(slots);
  std::vector<QueuePairSeen> queue_pairs;
  int silent_ones = 0;
  for (const link::Slot slot : slots) {
    if (slot == link_->slot()) continue;
    bool silent = false;
    Watched* const watched = watch(slot, silent);
    silent_ones += silent ? 1 : 0;
    if (watched == nullptr) continue;
    const auto& header = *reinterpret_cast<const rnic::SegmentHeader*>(watched->segment.data());
    ProcessSeen process = read_counters(header, slot, queue_pairs);
    process.pid = watched->neighbour->pid();
    process.incarnation = watched->neighbour->incarnation();
    visit(with, &process);
  }
  return silent_ones;
}

}  // namespace weir::verbs

using weir::verbs::Monitor;

extern "C" {

Monitor* weir_monitor_open(const char* directory, char* why, std::uint64_t why_bytes) {
  using weir::link::SameHostLink;
  const bool told = directory != nullptr && *directory != 0;
  auto opened =
      Monitor::open(SameHostLink::default_directory(told ? directory : std::getenv("WEIR_RUNTIME_DIR")));
  if (opened) return opened->release();
  if (why_bytes != 0) {
    const std::string& what = opened.error().what;
    const std::size_t fits = std::min<std::size_t>(what.size(), why_bytes - 1);
    std::memcpy(why, what.data(), fits);
    why[fits] = 0;
  }
  return nullptr;
}

int weir_monitor_look(Monitor* monitor, void (*visit)(void*, const weir::verbs::ProcessSeen*), void* with) {
  return monitor->look(visit, with);
}

void weir_monitor_close(Monitor* monitor) { delete monitor; }

}  // extern "C"
