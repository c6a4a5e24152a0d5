// Pre-allocated memory for one Asio operation, so that starting it cannot fail.
//
// Asio asks the associated allocator of a handler for memory, and gives it back before it calls the handler,
// which may start the next operation. While the block is taken, or is too small, the heap is used. The block
// must stay until the operation is over: its owner keeps itself alive through the handler, or outlives the
// io_context's operations. Threading: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace weir::rpc {

class ReservedBlock {
 public:
  ReservedBlock() = default;
  ReservedBlock(const ReservedBlock&) = delete;
  ReservedBlock& operator=(const ReservedBlock&) = delete;

  template <class T>
  struct Allocator {
    using value_type = T;
    explicit Allocator(ReservedBlock& of) : block(&of) {}
    template <class Other>
    Allocator(const Allocator<Other>& other) : block(other.block) {}
    T* allocate(std::size_t count) {
      static_assert(alignof(T) <= alignof(std::max_align_t));
      if (void* const at = block->take(count * sizeof(T))) return static_cast<T*>(at);
      return std::allocator<T>().allocate(count);
    }
    void deallocate(T* at, std::size_t count) {
      if (!block->give_back(at)) std::allocator<T>().deallocate(at, count);
    }
    template <class Other>
    bool operator==(const Allocator<Other>& other) const {
      return block == other.block;
    }
    ReservedBlock* block;
  };

  // The handler, with this memory for its operation.
  template <class Function>
  struct Handler {
    using allocator_type = Allocator<std::byte>;
    allocator_type get_allocator() const noexcept { return allocator_type(*block); }
    template <class... Arguments>
    void operator()(Arguments&&... arguments) {
      function(std::forward<Arguments>(arguments)...);
    }
    ReservedBlock* block;
    Function function;
  };
  template <class Function>
  Handler<Function> serve(Function function) {
    return {this, std::move(function)};
  }

 private:
  void* take(std::size_t bytes) {
    if (taken_ || bytes > bytes_.size()) return nullptr;
    taken_ = true;
    return bytes_.data();
  }
  bool give_back(void* at) {
    if (at != bytes_.data()) return false;
    taken_ = false;
    return true;
  }

  alignas(std::max_align_t) std::array<std::byte, 192> bytes_;
  bool taken_ = false;
};

}  // namespace weir::rpc
