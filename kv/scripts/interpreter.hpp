// A Lua 5.1 interpreter in which a script reaches only what it is given: no files, no processes, no bytecode,
// no variables of other scripts.
//
// Globals and library tables are protected: scripts see empty tables that read from the real ones and refuse
// changes. Memory is bounded: an allocation beyond the limit fails in the script with "not enough memory".
// Debian's Lua reports errors as C++ exceptions, so destructors run.
//
// Threading: the server's one thread.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <lua.hpp>
#include <memory>

#include "kv/scripts/budget.hpp"

namespace weir::kv {

// What a script may change for later ones.
struct InterpreterState {
  std::array<unsigned short, 3> random{0x330e, 0xabcd, 0x1234};  // for nrand48(); lrand48() begins so
  bool collector_changed = false;  // the garbage collector was stopped, or its settings are a script's
};

class Interpreter {
 public:
  // Throws std::bad_alloc.
  explicit Interpreter(std::size_t memory_limit);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  lua_State* lua() const { return lua_.get(); }
  Budget& budget() { return budget_; }
  std::size_t memory() const { return budget_.memory(); }
  std::size_t memory_limit() const { return budget_.memory_limit(); }

  // Pops the value on top of the stack and makes it the global of that name.
  void set_global(const char* name);
  // Likewise for a library, a table that scripts cannot change.
  void set_library(const char* name);
  // Call before a script: undoes an earlier script's changes to the garbage collector.
  void restore();

 private:
  struct Close {
    void operator()(lua_State* lua) const { lua_close(lua); }
  };

  Budget budget_;
  InterpreterState state_;
  std::unique_ptr<lua_State, Close> lua_;
};

}  // namespace weir::kv
