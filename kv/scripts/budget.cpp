#include "kv/scripts/budget.hpp"

#include "kv/text/large_blocks.hpp"

namespace weir::kv {

void Budget::look_now(lua_State* lua) {
  since_look_ = 0;
  ++looks_;
  if (look) look(lua);
}

// Lua itself works long without an instruction only where it allocates or frees much: it reads a program's
// text, collects garbage, lets a table grow. Nothing can be raised here.
void Budget::allocated(std::size_t bytes) {
  constexpr std::size_t steps_a_block = 5;
  constexpr std::size_t bytes_a_step_of_a_block = 256;  // most of them are only touched
  spend_and_raise_nothing(steps_a_block + bytes / bytes_a_step_of_a_block);
}

void Budget::spend_and_raise_nothing(std::size_t steps) {
  since_look_ += steps;
  if (since_look_ < steps_between_looks) return;
  since_look_ = 0;
  ++looks_;
  if (give_way) give_way();
}

void* Budget::allocate(void* budget, void* block, std::size_t old_size, std::size_t new_size) {
  auto& self = *static_cast<Budget*>(budget);
  self.allocated(new_size);
  if (new_size == 0) {
    self.used_ -= old_size;
    free_block(block, old_size);
    return nullptr;
  }
  // Shrinking a block must not fail.
  if (self.limited_ && new_size > old_size && self.used_ + (new_size - old_size) > self.limit_)
    return nullptr;
  void* const moved = reallocate_block(block, old_size, new_size);
  if (moved != nullptr) self.used_ = self.used_ - old_size + new_size;
  return moved;
}

}  // namespace weir::kv
