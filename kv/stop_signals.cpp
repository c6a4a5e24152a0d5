#include "kv/stop_signals.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace weir::kv {

namespace {

int make_signalfd() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGINT);
  sigaddset(&mask, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  const int fd = ::signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::system_category(), "cannot watch for signals");
  return fd;
}

}  // namespace

StopSignals::StopSignals(asio::io_context& io, std::function<void(int number)> received)
    : signals_(io), retry_(io), received_(std::move(received)) {
  const int fd = make_signalfd();
  std::error_code problem;
  signals_.assign(fd, problem);
  if (problem) {
    ::close(fd);
    throw std::system_error(problem, "cannot watch for signals");
  }
  wait();
}

void StopSignals::cancel() {
  std::error_code ignored;
  signals_.cancel(ignored);
  retry_.cancel();
}

void StopSignals::wait() {
  signals_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const std::error_code& problem) {
    if (problem == asio::error::operation_aborted) return;
    if (!problem) return take();
    retry_.expires_after(std::chrono::seconds(1));
    retry_.async_wait([this](const std::error_code& cancelled) {
      if (!cancelled) take();
    });
  });
}

void StopSignals::take() {
  signalfd_siginfo signal{};
  const ssize_t size = ::read(signals_.native_handle(), &signal, sizeof signal);
  wait();
  if (size == sizeof signal) received_(static_cast<int>(signal.ssi_signo));
}

}  // namespace weir::kv
