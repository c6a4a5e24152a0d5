// Loads libraries of functions: one by FUNCTION LOAD or from a snapshot, several by FUNCTION RESTORE.
#include <algorithm>

#include "kv/core/server_common.hpp"
#include "kv/scripts/scripts.hpp"

namespace weir::kv {

std::expected<FunctionLibrary, std::string> Scripts::compile_library(std::string_view text) {
  running_ = {};
  running_.loads = true;
  running_.began_steady_us = steady_us();
  lua_State* const lua = this->lua();
  interpreter_->budget().runs(lua);
  nudge_.watch(&interpreter_->budget());
  lua_sethook(lua, on_count, LUA_MASKCOUNT, instructions_between_looks);
  auto library = libraries_.compile(lua, text);
  lua_sethook(lua, nullptr, 0, 0);
  nudge_.watch(nullptr);
  running_.loads = false;
  interpreter_->budget().runs(nullptr);
  if (interpreter_->memory() <= interpreter_->memory_limit() / 2) return library;
  lua_gc(lua, LUA_GCCOLLECT, 0);
  if (library && interpreter_->memory() > interpreter_->memory_limit() / 2) {
    FunctionLibraries::give_back(lua, *library);
    library = std::unexpected("ERR Error registering functions: not enough memory");
  }
  return library;
}

std::expected<std::string, std::string> Scripts::add_library(std::string_view text, bool replace) {
  auto library = compile_library(text);
  if (!library) return std::unexpected(library.error());
  if (const auto refusal = libraries_.refusal(*library, replace)) {
    FunctionLibraries::give_back(lua(), *library);
    return std::unexpected(*refusal);
  }
  std::string name = library->name;
  libraries_.add(lua(), std::move(*library));
  return name;
}

std::expected<void, std::string> Scripts::restore_libraries(const std::vector<std::string>& texts,
                                                            RestorePolicy policy) {
  FunctionLibraries incoming;
  std::vector<FunctionLibrary> ready;
  std::string problem;
  // First check them against each other, as if there were no others: `incoming` lists them without texts.
  for (const std::string& text : texts) {
    auto library = compile_library(text);
    if (!library) {
      problem = library.error();
      break;
    }
    ready.push_back(std::move(*library));
    const std::string& name = ready.back().name;
    const bool there = policy == RestorePolicy::append && libraries_.all().contains(name);
    std::optional<std::string> refusal;
    if (there || incoming.all().contains(name)) refusal = "ERR Library " + name + " already exists";
    if (!refusal) refusal = incoming.refusal(ready.back(), false);
    if (!refusal && policy != RestorePolicy::flush) refusal = libraries_.refusal(ready.back(), true);
    if (refusal) {
      problem = *refusal;
      break;
    }
    incoming.add(
        lua(),
        FunctionLibrary{
            .name = ready.back().name, .text = {}, .functions = ready.back().functions, .compiled = false});
  }
  if (!problem.empty()) {
    for (const FunctionLibrary& library : ready) FunctionLibraries::give_back(lua(), library);
    return std::unexpected(problem);
  }
  if (policy == RestorePolicy::flush) libraries_.clear(lua());
  for (FunctionLibrary& library : ready) libraries_.add(lua(), std::move(library));
  return {};
}

}  // namespace weir::kv
