#include "cli/shell/interrupt.hpp"

namespace weir::shell {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  struct sigaction note_it{};
  note_it.sa_handler = [](int) { interrupted = 1; };
  note_it.sa_flags = SA_RESTART;  // for printing; waits in the kernel end in any case
  ::sigaction(SIGINT, &note_it, &before_);
}

Interrupt::~Interrupt() { ::sigaction(SIGINT, &before_, nullptr); }

bool Interrupt::came() { return interrupted != 0; }

}  // namespace weir::shell
