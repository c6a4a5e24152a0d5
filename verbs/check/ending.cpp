#include "verbs/check/ending.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "verbs/check/check_settings.hpp"
#include "verbs/check/checks.hpp"
#include "verbs/check/findings.hpp"
#include "verbs/check/inside.hpp"
#include "verbs/check/names.hpp"

namespace weir::check {
namespace {

std::atomic<bool> opened{false};

std::string summary() {
  const Findings all = findings();
  const Totals& checked = totals();
  std::string text = "==" + std::to_string(::getpid()) + "==weir check: " + count_of(all.errors, "error") +
                     ", " + count_of(all.risks, "risk") + ", " + count_of(all.notes, "note");
  if (all.repeated != 0) text += "; " + count_of(all.repeated, "repetition") + " not shown";
  if (all.suppressed != 0) text += "; " + std::to_string(all.suppressed) + " suppressed";
  return text + "; checked " + count_of(checked.queue_pairs.load(), "queue pair") + ", " +
         count_of(checked.requests.load(), "work request") + ", " +
         count_of(checked.completions.load(), "completion") + "\n";
}

void at_exit(int status, void*) {
  if (!opened.exchange(false)) return;
  const Inside inside;
  report_leaks();
  print(summary());
  const Findings all = findings();
  const bool failed = all.errors != 0 || (settings().strict && all.risks != 0);
  // Called within exit(), the C library goes on with the handlers that are left, and with this status.
  if (failed && status == 0) std::exit(error_status);
}

// A child has a NIC of its own, and none of its parent's objects.
void in_child() {
  opened = false;
  forget_findings();
  drop_all_records();
  objects().forget_all();
}

// As early as can be, so that it runs after everything that the program does at its end.
[[gnu::constructor]] void begin() {
  if (!settings().on) return;
  ::on_exit(at_exit, nullptr);
  pthread_atfork(nullptr, nullptr, in_child);
}

}  // namespace

void device_opened() { opened = true; }

}  // namespace weir::check
