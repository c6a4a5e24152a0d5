#include "twin/kernel_wait.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace weir::twin {
namespace {

struct Call {
  long number;
  const char* name;
  short events;  // of its first argument, a descriptor; 0: it waits for a child
};
constexpr Call calls[] = {
    {SYS_read, "read", POLLIN},        {SYS_readv, "readv", POLLIN},    {SYS_recvfrom, "recv", POLLIN},
    {SYS_recvmsg, "recvmsg", POLLIN},  {SYS_accept, "accept", POLLIN},  {SYS_accept4, "accept", POLLIN},
    {SYS_write, "write", POLLOUT},     {SYS_writev, "writev", POLLOUT}, {SYS_sendto, "send", POLLOUT},
    {SYS_sendmsg, "sendmsg", POLLOUT}, {SYS_wait4, "waitpid", 0},       {SYS_waitid, "waitid", 0},
};

// The call that it is in, as the kernel says: "0 0x3 0x7f..."; while it runs, "running".
const Call* call_of(pid_t process, pid_t thread, int& descriptor) {
  std::ifstream file("/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/syscall");
  long number = -1;
  std::string first;
  if (!(file >> number >> first)) return nullptr;
  const auto* const found = std::ranges::find(calls, number, &Call::number);
  if (found == std::end(calls)) return nullptr;
  descriptor = found->events != 0 ? static_cast<int>(std::stoul(first, nullptr, 16)) : -1;
  return found;
}

link::UniqueFd copy_of(pid_t process, int descriptor) {
  const link::UniqueFd owner(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!owner) return {};
  return link::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_getfd, owner.get(), descriptor, 0)));
}

// It was stopped while it slept: the kernel will begin its call anew.
bool was_in(const Call& call, const StoppedThread& thread) {
  constexpr long restarts = -512;  // ERESTARTSYS
  const auto registers = thread.registers();
  return registers && static_cast<long>(registers->orig_rax) == call.number &&
         static_cast<long>(registers->rax) == restarts;
}

}  // namespace

std::unique_ptr<KernelWait> KernelWait::prove(pid_t process, pid_t thread) {
  int descriptor = -1;
  const Call* const call = call_of(process, thread, descriptor);
  if (call == nullptr) return nullptr;
  std::unique_ptr<KernelWait> made(new KernelWait(call->name, descriptor, call->events));
  if (descriptor >= 0) {
    made->copy_ = copy_of(process, descriptor);
    if (!made->copy_ || made->is_over()) return nullptr;
  }
  made->stopped_ = StoppedThread::stop(process, thread);
  return made->stopped_ && was_in(*call, *made->stopped_) ? std::move(made) : nullptr;
}

bool KernelWait::is_over() const {
  pollfd look{copy_.get(), events_, 0};
  return copy_ && ::poll(&look, 1, 0) != 0;
}

}  // namespace weir::twin
