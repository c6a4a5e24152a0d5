#include "kv/scripts/own_stack.hpp"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define WEIR_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef WEIR_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace weir::kv {

namespace {

// Lua allows 200 nested C calls, some of which hold 8 KiB; pages are allocated as they are touched.
constexpr std::size_t stack_bytes = 8 * 1024 * 1024;

void announce([[maybe_unused]] void** keep_fake_stack, [[maybe_unused]] const void* bottom,
              [[maybe_unused]] std::size_t size) {
#ifdef WEIR_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(keep_fake_stack, bottom, size);
#endif
}

void arrived([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** bottom_left,
             [[maybe_unused]] std::size_t* size_left) {
#ifdef WEIR_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, bottom_left, size_left);
#endif
}

// Notes where the stack is.
struct StackMaker {
  boost::context::protected_fixedsize_stack make{stack_bytes};
  const void** bottom;
  std::size_t* size;

  boost::context::stack_context allocate() {
    const boost::context::stack_context made = make.allocate();
    *bottom = static_cast<const char*>(made.sp) - made.size;
    *size = made.size;
    return made;
  }
  void deallocate(boost::context::stack_context& made) { make.deallocate(made); }
};

}  // namespace

OwnStack::~OwnStack() {
  if (!stack_) return;
  ending_ = true;
  enter();
}

bool OwnStack::run(std::function<void()> work) {
  work_ = std::move(work);
  if (!stack_) {
    StackMaker maker{.bottom = &here_.bottom, .size = &here_.size};
    stack_ = boost::context::fiber(std::allocator_arg, maker, [this](boost::context::fiber&& caller) {
      arrived(nullptr, &outside_.bottom, &outside_.size);
      caller_ = std::move(caller);
      serve();
      announce(nullptr, outside_.bottom, outside_.size);
      return std::move(caller_);
    });
  }
  return enter();
}

bool OwnStack::resume() { return enter(); }

bool OwnStack::enter() {
  inside_ = true;
  announce(&outside_.fake_stack, here_.bottom, here_.size);
  stack_ = std::move(stack_).resume();
  arrived(outside_.fake_stack, nullptr, nullptr);
  inside_ = false;
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return work_ == nullptr;
}

void OwnStack::suspend() {
  announce(&here_.fake_stack, outside_.bottom, outside_.size);
  caller_ = std::move(caller_).resume();
  arrived(here_.fake_stack, &outside_.bottom, &outside_.size);
}

void OwnStack::serve() {
  while (!ending_) {
    try {
      work_();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    work_ = nullptr;
    suspend();
  }
}

}  // namespace weir::kv
