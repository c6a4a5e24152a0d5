#include "kv/scripts/functions.hpp"

#include <algorithm>
#include <cctype>

#include "kv/scripts/budget.hpp"
#include "kv/scripts/lua_values.hpp"
#include "kv/scripts/redis_library.hpp"
#include "kv/scripts/sandbox.hpp"

namespace weir::kv {

namespace {

bool is_name(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

int refuse(lua_State* lua, std::string_view text) {
  push_error(lua, text);
  return lua_error(lua);
}

// The arguments of register_function. The callback is on Lua's stack.
struct Registration {
  std::optional<std::string> name;
  int callback = 0;  // its index on the stack
  Function function{};
};

void take_flags(lua_State* lua, Function& function) {
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) break;
    if (lua_type(lua, -1) != LUA_TSTRING || !set_script_flag(function.flags, text_at(lua, -1)))
      refuse(lua, "ERR unknown flag given");
    function.flag_names.emplace_back(text_at(lua, -1));
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
}

// redis.register_function{function_name = ..., callback = ..., flags = {...}, description = ...}
void take_named(lua_State* lua, Registration& out) {
  if (!lua_istable(lua, 1)) {
    raise_named(lua,
                "ERR calling %s.register_function with a single argument is only applicable to Lua table "
                "(representing "
                "named arguments).");
  }
  lua_settop(lua, 1);
  lua_pushnil(lua);  // the place for the callback
  for (lua_pushnil(lua); lua_next(lua, 1) != 0; lua_pop(lua, 1)) {
    if (lua_type(lua, -2) != LUA_TSTRING)
      raise_named(lua, "ERR named argument key given to %s.register_function is not a string");
    const std::string_view key = text_at(lua, -2);
    if (key == "function_name") {
      if (lua_type(lua, -1) != LUA_TSTRING)
        raise_named(lua, "ERR function_name argument given to %s.register_function must be a string");
      out.name = text_at(lua, -1);
    } else if (key == "description") {
      if (lua_type(lua, -1) != LUA_TSTRING)
        raise_named(lua, "ERR description argument given to %s.register_function must be a string");
      out.function.description = text_at(lua, -1);
    } else if (key == "callback") {
      if (!lua_isfunction(lua, -1))
        raise_named(lua, "ERR callback argument given to %s.register_function must be a function");
      lua_pushvalue(lua, -1);
      lua_replace(lua, 2);
      out.callback = 2;
    } else if (key == "flags") {
      if (!lua_istable(lua, -1))
        raise_named(lua,
                    "ERR flags argument to %s.register_function must be a table representing function flags");
      take_flags(lua, out.function);
    } else {
      raise_named(lua, "ERR unknown argument given to %s.register_function");
    }
  }
  if (!out.name) raise_named(lua, "ERR %s.register_function must get a function name argument");
  if (out.callback == 0) raise_named(lua, "ERR %s.register_function must get a callback argument");
}

void take_positional(lua_State* lua, Registration& out) {
  if (!lua_isfunction(lua, 2))
    raise_named(lua, "ERR second argument to %s.register_function must be a function");
  if (lua_isstring(lua, 1) == 0)
    raise_named(lua, "ERR first argument to %s.register_function must be a string");
  out.name = text_at(lua, 1);
  out.callback = 2;
}

// The function's own name in the library; empty: it has none of that name.
std::string name_in(const FunctionLibrary& library, std::string_view name) {
  if (library.functions.contains(name)) return std::string(name);
  const auto same =
      std::ranges::find_if(library.functions, [name](const auto& one) { return is_word(one.first, name); });
  return same == library.functions.end() ? std::string() : same->first;
}

}  // namespace

void FunctionLibraries::give_back(lua_State* lua, const FunctionLibrary& library) {
  if (!library.compiled) return;
  for (const auto& [name, function] : library.functions)
    luaL_unref(lua, LUA_REGISTRYINDEX, function.reference);
}

std::size_t FunctionLibraries::text_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, library] : libraries_) bytes += library.text.size();
  return bytes;
}

void FunctionLibraries::clear(lua_State* lua) {
  for (const auto& [name, library] : libraries_) give_back(lua, library);
  libraries_.clear();
}

int FunctionLibraries::register_function(lua_State* lua) {
  if (loading_ == nullptr)
    return raise_named(lua, "ERR %s.register_function can only be called on FUNCTION LOAD command");
  const int count = lua_gettop(lua);
  if (count < 1 || count > 2)
    return raise_named(lua, "ERR wrong number of arguments to %s.register_function");
  Registration given;
  count == 1 ? take_named(lua, given) : take_positional(lua, given);
  if (!is_name(*given.name)) {
    return refuse(
        lua,
        "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one "
        "character long");
  }
  if (loading_->functions.contains(*given.name))
    return refuse(lua, "ERR Function already exists in the library");
  given.function.flags.declared = true;
  lua_pushvalue(lua, given.callback);
  given.function.reference = luaL_ref(lua, LUA_REGISTRYINDEX);
  loading_->functions.emplace(*given.name, std::move(given.function));
  return 0;
}

std::expected<FunctionLibrary, std::string> FunctionLibraries::compile(lua_State* lua,
                                                                       std::string_view text) {
  const auto shebang = read_shebang(text, true);
  if (!shebang) return std::unexpected(shebang.error());
  if (!is_name(shebang->name)) {
    return std::unexpected(
        "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one "
        "character "
        "long");
  }
  FunctionLibrary library{.name = shebang->name, .text = std::string(text), .functions = {}};
  const int top = lua_gettop(lua);
  lua_pushcfunction(lua, locate_error);
  std::string problem;
  const int loaded = [&] {
    const Budget::Limited limited(Budget::of(lua));
    return luaL_loadbuffer(lua, shebang->source.data(), shebang->source.size(), "@user_function");
  }();
  if (loaded != 0) {
    problem = "ERR Error compiling function: " + std::string(text_at(lua, -1));
  } else {
    loading_ = &library;
    lua_getfield(lua, LUA_REGISTRYINDEX, loading_globals);
    show_as_globals(lua);
    const int status = [&] {
      const Budget::Limited limited(Budget::of(lua));
      return lua_pcall(lua, 0, 0, top + 1);
    }();
    show_own_globals(lua);
    loading_ = nullptr;
    if (status != 0) {
      if (lua_istable(lua, -1)) lua_getfield(lua, -1, "err");
      const std::string_view message = lua_isstring(lua, -1) != 0 ? text_at(lua, -1) : "not enough memory";
      problem = "ERR Error registering functions: " + std::string(message);
    } else if (library.functions.empty()) {
      problem = "ERR No functions registered";
    }
  }
  lua_settop(lua, top);
  if (problem.empty()) return library;
  give_back(lua, library);
  return std::unexpected(problem);
}

std::optional<std::string> FunctionLibraries::refusal(const FunctionLibrary& library, bool replace) const {
  if (!replace && libraries_.contains(library.name))
    return "ERR Library '" + library.name + "' already exists";
  for (const auto& [name, other] : libraries_) {
    if (name == library.name) continue;
    for (const auto& [function, ignored] : library.functions) {
      if (!name_in(other, function).empty()) return "ERR Function " + function + " already exists";
    }
  }
  return std::nullopt;
}

void FunctionLibraries::add(lua_State* lua, FunctionLibrary library) {
  remove(lua, library.name);
  std::string name = library.name;
  libraries_.emplace(std::move(name), std::move(library));
}

bool FunctionLibraries::remove(lua_State* lua, std::string_view name) {
  const auto it = libraries_.find(name);
  if (it == libraries_.end()) return false;
  give_back(lua, it->second);
  libraries_.erase(it);
  return true;
}

void FunctionLibraries::forget_functions() {
  for (auto& [name, library] : libraries_) library.compiled = false;
}

FunctionLibraries::Found FunctionLibraries::with_function(std::string_view name) {
  for (auto& [ignored, library] : libraries_) {
    if (library.functions.contains(name)) return {&library, std::string(name)};
  }
  for (auto& [ignored, library] : libraries_) {
    if (std::string function = name_in(library, name); !function.empty())
      return {&library, std::move(function)};
  }
  return {};
}

std::size_t FunctionLibraries::function_count() const {
  std::size_t count = 0;
  for (const auto& [name, library] : libraries_) count += library.functions.size();
  return count;
}

}  // namespace weir::kv
