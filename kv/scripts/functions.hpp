// The libraries loaded by FUNCTION LOAD, and the functions that they registered.
//
// A library is a Lua program that runs once, when it is loaded, and registers functions. FCALL
// runs one of them as a script. If the interpreter is made anew, a library runs again before one
// of its functions is called.
//
// Threading: the server's one thread.
#pragma once

#include <expected>
#include <functional>
#include <lua.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/command/command.hpp"
#include "kv/scripts/shebang.hpp"

namespace weir::kv {

struct Function {
  std::optional<std::string> description;
  ScriptFlags flags;
  std::vector<std::string> flag_names;
  int reference;  // in the registry of the interpreter
};

struct FunctionLibrary {
  std::string name;
  std::string text;
  std::map<std::string, Function, std::less<>> functions;
  bool compiled = true;
};

class FunctionLibraries {
 public:
  // Runs a library whose text read_shebang() has accepted. The error is the reply.
  std::expected<FunctionLibrary, std::string> compile(lua_State* lua, std::string_view text);
  // The reply that refuses the library, if any; `replace`: it may replace one of the same name.
  std::optional<std::string> refusal(const FunctionLibrary& library, bool replace) const;
  void add(lua_State* lua, FunctionLibrary library);
  // False: no library has that name.
  bool remove(lua_State* lua, std::string_view name);
  // The interpreter is gone; the functions must be registered again in a new one.
  void forget_functions();
  void clear(lua_State* lua);

  // The library with that function; null: none has it. As in Redis, a function is found whatever the case of
  // its letters (the names of libraries have theirs); `function` is its name.
  struct Found {
    FunctionLibrary* library = nullptr;
    std::string function;
  };
  Found with_function(std::string_view name);
  const std::map<std::string, FunctionLibrary, std::less<>>& all() const { return libraries_; }
  std::size_t text_bytes() const;
  std::size_t function_count() const;

  // Releases the functions of a library that was not added.
  static void give_back(lua_State* lua, const FunctionLibrary& library);

  // The registry's name for what push_loading_globals() made.
  static constexpr const char* loading_globals = "weir.loading_globals";

  // Implements redis.register_function for the library that is being loaded.
  int register_function(lua_State* lua);
  bool loading() const { return loading_ != nullptr; }

 private:
  std::map<std::string, FunctionLibrary, std::less<>> libraries_;
  FunctionLibrary* loading_ = nullptr;
};

}  // namespace weir::kv
