// The C library's calls that install signal handlers (sockets/calls/held_signals.hpp). Entry points of
// programs that we did not write.
#include <signal.h>

#include <cerrno>

#include "preload/next_call.hpp"
#include "sockets/calls/held_signals.hpp"
#include "sockets/settings.hpp"

extern "C" {

int sigaction(int number, const struct sigaction* action, struct sigaction* before) noexcept {
  WEIR_NEXT(weir::sockets::SetAction, sigaction);
  if (weir::sockets::settings().off) return call(number, action, before);
  return weir::sockets::set_action(call, number, action, before);
}

sighandler_t signal(int number, sighandler_t handler) noexcept {
  WEIR_NEXT(sighandler_t(int, sighandler_t), signal);
  if (handler == SIG_ERR || weir::sockets::settings().off) return call(number, handler);
  struct sigaction action{}, before{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaddset(&action.sa_mask, number);
  return ::sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

}  // extern "C"
