// The one NIC of a process: made on first use from the environment, left at exit, made
// anew in a forked child.
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "link/filtered_calls.hpp"
#include "link/not_cancelled.hpp"
#include "verbs/nic/fault_plan.hpp"
#include "verbs/nic/nic_process.hpp"
#include "verbs/nic/wire_key.hpp"

namespace weir::verbs {
namespace {

constexpr std::size_t small_segment_bytes = 128u << 20;

struct Process {
  std::mutex mutex;
  std::unique_ptr<NicProcess> nic;
  pid_t pid = 0;
};

// Never destroyed: threads of the application may still poll while the process exits.
Process& process() {
  static auto* the_process = new Process;
  return *the_process;
}

std::atomic<bool> ends_silently{false};

void leave_at_exit() {
  if (ends_silently.load()) return;
  if (NicProcess* nic = NicProcess::existing()) nic->leave();
}

link::Result<NicProcess::Options> options_of_environment() {
  const auto key = read_wire_key(::secure_getenv(wire_key_variable));
  if (!key) return std::unexpected(key.error());
  NicProcess::Options options;
  options.wire_key = *key;
  const auto carrier = read_carrier(::secure_getenv(carrier_variable));
  if (!carrier) return std::unexpected(carrier.error());
  options.carrier = *carrier;
  if (const auto& plan = fault_plan(); !plan)
    return std::unexpected(plan.error());
  else
    options.faults = *plan;
  if (const char* const words = ::secure_getenv(weak_variable); words != nullptr && *words != '\0') {
    const auto plan = rnic::weak::read_plan(words);
    if (!plan)
      return std::unexpected(
          link::Error{std::errc::invalid_argument, std::string(weak_variable) + ": " + plan.error()});
    options.weak = *plan;
  }
  options.directory = link::SameHostLink::default_directory(::secure_getenv("WEIR_RUNTIME_DIR"));
  const char* const refuse = ::secure_getenv(no_process_vm_variable);
  constexpr std::array<long, 2> copies{SYS_process_vm_readv, SYS_process_vm_writev};
  const bool refused = (refuse != nullptr && *refuse != '\0') || !link::survives(copies);
  if (refused) options.first = Tier::mover;
  // To find leaks, Valgrind reads all mapped memory, and that allocates a sparse file's pages.
  const char* const preloaded = ::secure_getenv("LD_PRELOAD");
  if (preloaded != nullptr && std::strstr(preloaded, "/vgpreload_") != nullptr)
    options.segment_bytes = small_segment_bytes;
  return options;
}

}  // namespace

link::Result<NicProcess*> NicProcess::instance() {
  Process& self = process();
  const std::lock_guard lock(self.mutex);
  if (self.nic && self.pid == ::getpid()) return self.nic.get();
  // A forked child may neither use nor destroy the NIC, threads and mappings of its parent.
  if (self.nic) (void)self.nic.release();
  const link::NotCancelled whole;
  auto options = options_of_environment();
  if (!options) return std::unexpected(options.error());
  auto made = make(std::move(*options));
  if (!made) return std::unexpected(made.error());
  if (self.pid == 0) std::atexit(leave_at_exit);
  self.nic = std::move(*made);
  self.pid = ::getpid();
  return self.nic.get();
}

NicProcess* NicProcess::existing() {
  Process& self = process();
  const std::lock_guard lock(self.mutex);
  return self.pid == ::getpid() ? self.nic.get() : nullptr;
}

void NicProcess::end_silently() { ends_silently.store(true); }

}  // namespace weir::verbs
