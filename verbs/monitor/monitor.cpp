#include "verbs/monitor/monitor.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "verbs/monitor/counters_seen.hpp"

namespace weir::verbs {
namespace {

constexpr std::chrono::milliseconds answer_limit{200};

}  // namespace

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
  (*neighbour)->close_greeting_fds();
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
      Monitor::open(SameHostLink::default_directory(told ? directory : ::secure_getenv("WEIR_RUNTIME_DIR")));
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
