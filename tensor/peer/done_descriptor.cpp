#include "tensor/peer/done_descriptor.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <system_error>

#include "tensor/own_thread.hpp"

namespace weir::tensor {

Result<std::unique_ptr<DoneDescriptor>> DoneDescriptor::open(CallerDriven& driven) {
  const int number = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (number < 0) return fail(Errc::too_much, "no descriptor: " + std::generic_category().message(errno));
  std::unique_ptr<DoneDescriptor> made(new DoneDescriptor(driven, number));
  try {
    made->thread_ = start_own_thread("weir-tensor", [descriptor = made.get()] {
      descriptor->driven_.run_until([descriptor] { return descriptor->stopping_.load(); },
                                    CallerDriven::Clock::time_point::max());
    });
  } catch (const std::system_error& refused) {
    return fail(Errc::too_much, std::string("no thread: ") + refused.what());
  }
  return made;
}

DoneDescriptor::~DoneDescriptor() {
  if (thread_.joinable()) {
    stopping_ = true;
    driven_.post([driven = &driven_] { driven->progressed(); });  // it may run after this
    thread_.join();
  }
  ::close(number_);
}

// If the count is at its limit the descriptor is readable already.
void DoneDescriptor::signal() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(number_, &one, sizeof one);
}

}  // namespace weir::tensor
