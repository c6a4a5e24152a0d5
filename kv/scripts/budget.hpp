// What a script may use: memory, and work between two looks at the clock.
//
// Lua's hook sees only instructions, so a library function that loops in C must say what it does: it calls
// spend() with its steps. One step is about the work of one of Lua's instructions, some ten nanoseconds. When
// steps_between_looks of them are spent, `look` is called: it may suspend the script to let other clients
// have a turn, and it raises an error in a script that was killed. So a loop that spends can be long, but
// never deaf.
//
// The budget is the argument of Lua's allocator, through which every function finds it.
//
// Threading: the server's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <lua.hpp>

namespace weir::kv {

class Budget {
 public:
  static constexpr std::size_t steps_between_looks = 100'000;  // about a millisecond
  static constexpr std::size_t bytes_a_step = 16;              // that are copied, compared or looked through

  explicit Budget(std::size_t memory_limit) : limit_(memory_limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  static Budget& of(lua_State* lua) {
    void* budget = nullptr;
    lua_getallocf(lua, &budget);
    return *static_cast<Budget*>(budget);
  }
  // Lua's allocator; `budget` is one.
  static void* allocate(void* budget, void* block, std::size_t old_size, std::size_t new_size);

  // The limit holds while one exists, within lua_pcall and its like. Elsewhere an allocation that failed
  // would end the program, and there is little to allocate.
  class Limited {
   public:
    explicit Limited(Budget& budget) : budget_(budget) { budget_.limited_ = true; }
    ~Limited() { budget_.limited_ = false; }
    Limited(const Limited&) = delete;
    Limited& operator=(const Limited&) = delete;

   private:
    Budget& budget_;
  };

  std::size_t memory() const { return used_; }
  std::size_t memory_limit() const { return limit_; }
  std::uint64_t looks() const { return looks_; }

  // Call before the steps are taken, with what they work on on Lua's stack. May raise a Lua error.
  void spend(lua_State* lua, std::size_t steps) {
    since_look_ += steps;
    if (since_look_ >= steps_between_looks) look_now(lua);
  }
  void spend_bytes(lua_State* lua, std::size_t bytes) { spend(lua, 1 + bytes / bytes_a_step); }

  // For what must not be left by an error: it may only suspend the script.
  void spend_and_raise_nothing(std::size_t steps);

  // The coroutine that runs, for what interrupts it from outside; null: nothing runs.
  void runs(lua_State* lua) { running_ = lua; }
  lua_State* running() const { return running_; }

  std::function<void(lua_State*)> look;  // may suspend the script, or raise an error; may be empty
  std::function<void()> give_way;        // may suspend the script and raises nothing; may be empty

 private:
  void look_now(lua_State* lua);
  void allocated(std::size_t bytes);

  lua_State* running_ = nullptr;
  std::size_t used_ = 0;
  const std::size_t limit_;
  bool limited_ = false;
  std::size_t since_look_ = 0;
  std::uint64_t looks_ = 0;
};

}  // namespace weir::kv
