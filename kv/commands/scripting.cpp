// Scripts and functions: EVAL, FCALL and their kin, SCRIPT, FUNCTION. kv/scripts implements them.
#include <array>
#include <optional>
#include <string_view>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/effects/effects.hpp"
#include "kv/rdb/dump_payload.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/text/glob.hpp"

namespace weir::kv {

namespace {

void eval(const Call& call) { call.server.scripts->eval(call, false); }
void eval_ro(const Call& call) { call.server.scripts->eval(call, true); }
void evalsha(const Call& call) { call.server.scripts->eval_sha(call, false); }
void evalsha_ro(const Call& call) { call.server.scripts->eval_sha(call, true); }

void load_script(const Call& call) {
  const std::string sha = call.server.scripts->load(call, call[2]);
  if (!sha.empty()) call.reply.bulk(sha);
}

void script_exists(const Call& call) {
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i)
    call.reply.integer(call.server.scripts->knows(std::string(call[i])) ? 1 : 0);
}

void show_script(const Call& call) {
  std::array<char, sha1_hex_bytes> lower;
  const Script* script = call.server.scripts->find(call[2], lower);
  script == nullptr ? call.reply.error("NOSCRIPT No matching script. Please use EVAL.")
                    : call.reply.bulk(script->text);
}

void flush_scripts(const Call& call) {
  if (call.count() > 3 || (call.count() == 3 && !is_word(call[2], "SYNC") && !is_word(call[2], "ASYNC")))
    return call.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  call.server.scripts->flush();
  call.reply.ok();
}

void kill_script(const Call& call) { call.server.scripts->kill(call); }

// There is no script debugger here.
void script_debug(const Call& call) {
  if (is_word(call[2], "NO")) return call.reply.ok();
  if (is_word(call[2], "YES") || is_word(call[2], "SYNC"))
    return call.reply.error("ERR this server has no script debugger");
  call.reply.error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
}

void script_help(const Call& call) {
  reply_help(call,
             {
                 "DEBUG (YES|SYNC|NO)",
                 "    Set the debug mode for subsequent scripts executed.",
                 "EXISTS <sha1> [<sha1> ...]",
                 "    Return information about the existence of the scripts in the script cache.",
                 "FLUSH [ASYNC|SYNC]",
                 "    Flush the Lua scripts cache. Very dangerous on replicas.",
                 "    When called without the optional mode argument, the behavior is determined by the",
                 "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
                 "    * ASYNC: Asynchronously flush the scripts cache.",
                 "    * SYNC: Synchronously flush the scripts cache.",
                 "KILL",
                 "    Kill the currently executing Lua script.",
                 "LOAD <script>",
                 "    Load a script into the scripts cache without executing it.",
             });
}

constexpr Command of_script(std::string_view name, int arity, std::uint32_t flags, void (*run)(const Call&),
                            std::string_view summary) {
  return {name, arity, flags, 0, 0, 0, run, "scripting", summary, {}, "script"};
}

void fcall(const Call& call) { call.server.scripts->call_function(call, false); }
void fcall_ro(const Call& call) { call.server.scripts->call_function(call, true); }

void load_functions(const Call& call) {
  bool replace = false;
  std::size_t at = 2;
  for (; at + 1 < call.count(); ++at) {
    if (!is_word(call[at], "REPLACE"))
      return call.reply.error("ERR Unknown option given: " + std::string(up_to_zero(call[at])));
    replace = true;
  }
  call.server.scripts->load_library(call, call[at], replace);
}

void delete_functions(const Call& call) {
  if (!call.server.scripts->remove_library(call[2])) return call.reply.error("ERR Library not found");
  call.server.effects.changed_all();
  call.reply.ok();
}

void flush_functions(const Call& call) {
  if (call.count() > 3) return call.subcommand_error();
  if (call.count() == 3 && !is_word(call[2], "SYNC") && !is_word(call[2], "ASYNC"))
    return call.reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  call.server.effects.changed_all(call.server.scripts->libraries().all().size());
  call.server.scripts->flush_libraries();
  call.reply.ok();
}

void reply_function(Reply& reply, const std::string& name, const Function& function) {
  reply.map(3);
  reply.bulk("name");
  reply.bulk(name);
  reply.bulk("description");
  function.description ? reply.bulk(*function.description) : reply.null();
  reply.bulk("flags");
  reply.set(function.flag_names.size());
  for (const std::string& flag : function.flag_names) reply.simple(flag);
}

void list_functions(const Call& call) {
  bool with_code = false;
  std::optional<std::string_view> pattern;
  for (std::size_t i = 2; i < call.count(); ++i) {
    if (!with_code && is_word(call[i], "WITHCODE")) {
      with_code = true;
    } else if (!pattern && is_word(call[i], "LIBRARYNAME")) {
      if (++i == call.count()) return call.reply.error("ERR library name argument was not given");
      pattern = call[i];
    } else {
      return call.reply.error("ERR Unknown argument " + std::string(up_to_zero(call[i])));
    }
  }
  std::vector<const FunctionLibrary*> shown;
  for (const auto& [name, library] : call.server.scripts->libraries().all()) {
    if (glob_match(pattern.value_or("*"), name, Case::ignore)) shown.push_back(&library);
  }
  call.reply.array(shown.size());
  for (const FunctionLibrary* library : shown) {
    call.reply.map(with_code ? 4 : 3);
    call.reply.bulk("library_name");
    call.reply.bulk(library->name);
    call.reply.bulk("engine");
    call.reply.bulk("LUA");
    call.reply.bulk("functions");
    call.reply.array(library->functions.size());
    for (const auto& [name, function] : library->functions) reply_function(call.reply, name, function);
    if (!with_code) continue;
    call.reply.bulk("library_code");
    call.reply.bulk(library->text);
  }
}

void function_stats(const Call& call) {
  const FunctionLibraries& libraries = call.server.scripts->libraries();
  call.reply.map(2);
  call.reply.bulk("running_script");
  call.server.scripts->reply_running(call.reply);
  call.reply.bulk("engines");
  call.reply.map(1);
  call.reply.bulk("LUA");
  call.reply.map(2);
  call.reply.bulk("libraries_count");
  call.reply.integer(static_cast<std::int64_t>(libraries.all().size()));
  call.reply.bulk("functions_count");
  call.reply.integer(static_cast<std::int64_t>(libraries.function_count()));
}

void dump_functions(const Call& call) {
  std::vector<std::string_view> texts;
  for (const auto& [name, library] : call.server.scripts->libraries().all()) texts.push_back(library.text);
  call.reply.bulk(rdb::dump_functions(texts));
}

void restore_functions(const Call& call) {
  auto policy = Scripts::RestorePolicy::append;
  if (call.count() > 4) return call.subcommand_error();
  if (call.count() == 4) {
    if (is_word(call[3], "REPLACE")) {
      policy = Scripts::RestorePolicy::replace;
    } else if (is_word(call[3], "FLUSH")) {
      policy = Scripts::RestorePolicy::flush;
    } else if (!is_word(call[3], "APPEND")) {
      return call.reply.error(
          "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
    }
  }
  const auto held = rdb::unseal(call[2]);
  if (!held) return call.reply.error("ERR DUMP payload version or checksum are wrong");
  const auto texts =
      rdb::restore_functions(*held, static_cast<std::uint64_t>(call.server.settings.proto_max_bulk_len));
  if (!texts) return call.reply.error("ERR " + texts.error());
  if (const auto done = call.server.scripts->restore_libraries(*texts, policy); !done)
    return call.reply.error(done.error());
  call.server.effects.changed_all();
  call.reply.ok();
}

void function_help(const Call& call) {
  reply_help(
      call,
      {
          "LOAD [REPLACE] <FUNCTION CODE>",
          "    Create a new library with the given library name and code.",
          "DELETE <LIBRARY NAME>",
          "    Delete the given library.",
          "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
          "    Return general information on all the libraries:",
          "    * Library name",
          "    * The engine used to run the Library",
          "    * Library description",
          "    * Functions list",
          "    * Library code (if WITHCODE is given)",
          "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
          "STATS",
          "    Return information about the current function running:",
          "    * Function name",
          "    * Command used to run the function",
          "    * Duration in MS that the function is running",
          "    If no function is running, return nil",
          "    In addition, returns a list of available engines.",
          "KILL",
          "    Kill the current running function.",
          "FLUSH [ASYNC|SYNC]",
          "    Delete all the libraries.",
          "    When called without the optional mode argument, the behavior is determined by the",
          "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
          "    * ASYNC: Asynchronously flush the libraries.",
          "    * SYNC: Synchronously flush the libraries.",
          "DUMP",
          "    Return a serialized payload representing the current libraries, can be restored using "
          "FUNCTION RESTORE command",
          "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
          "    Restore the libraries represented by the given payload, it is possible to give a "
          "restore policy to",
          "    control how to handle existing libraries (default APPEND):",
          "    * FLUSH: delete all existing libraries.",
          "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
          "    * REPLACE: appends the restored libraries to the existing libraries, On collision, "
          "replace the old",
          "      libraries with the new libraries (notice that even on this option there is a chance "
          "of failure",
          "      in case of functions name conflict with another library).",
      });
}

constexpr Command of_function(std::string_view name, int arity, std::uint32_t flags, void (*run)(const Call&),
                              std::string_view summary) {
  return {name, arity, flags, 0, 0, 0, run, "scripting", summary, {}, "function"};
}

}  // namespace

std::span<const Command> scripting_commands() {
  using namespace flag;
  constexpr std::uint32_t runs = noscript | stale | skip_monitor | no_mandatory_keys | movablekeys;
  constexpr std::uint32_t writes = runs | may_replicate;
  constexpr std::uint32_t reads = runs | readonly;
  static constexpr Command script_subcommands[] = {
      of_script("debug", 3, noscript, script_debug, "Says that there is no debugger."),
      of_script("exists", -3, noscript, script_exists, "Tells which scripts are known."),
      of_script("flush", -2, noscript | may_replicate, flush_scripts, "Forgets all scripts."),
      of_script("help", 2, loading | stale, script_help, "Explains SCRIPT."),
      of_script("kill", 2, noscript | allow_busy, kill_script, "Ends the script that runs."),
      of_script("load", 3, noscript | stale, load_script, "Makes a script known by its SHA-1."),
      of_script("show", 3, noscript, show_script, "Returns the text of a script."),
  };
  constexpr std::uint32_t changes = noscript | write;
  static constexpr Command function_subcommands[] = {
      of_function("delete", 3, changes, delete_functions, "Forgets a library."),
      of_function("dump", 2, noscript, dump_functions, "Returns all libraries as bytes that RESTORE takes."),
      of_function("flush", -2, changes, flush_functions, "Forgets all libraries."),
      of_function("help", 2, loading | stale, function_help, "Explains FUNCTION."),
      of_function("kill", 2, noscript | allow_busy, kill_script, "Ends the function that runs."),
      of_function("list", -2, noscript, list_functions, "Lists libraries and their functions."),
      of_function("load", -3, changes | denyoom, load_functions, "Loads a library of functions."),
      of_function("restore", -3, changes | denyoom, restore_functions, "Loads what DUMP returned."),
      of_function("stats", 2, noscript | allow_busy, function_stats,
                  "Tells what runs, and how many functions there are."),
  };
  static constexpr Command commands[] = {
      {"eval", -3, writes, 0, 0, 0, eval, "scripting", "Runs a script."},
      {"eval_ro", -3, reads, 0, 0, 0, eval_ro, "scripting", "Runs a script that only reads."},
      {"evalsha", -3, writes, 0, 0, 0, evalsha, "scripting", "Runs a script by its SHA-1."},
      {"evalsha_ro", -3, reads, 0, 0, 0, evalsha_ro, "scripting",
       "Runs a script by its SHA-1 that only reads."},
      {"fcall", -3, writes, 0, 0, 0, fcall, "scripting", "Calls a function."},
      {"fcall_ro", -3, reads, 0, 0, 0, fcall_ro, "scripting", "Calls a function that only reads."},
      {"function", -2, 0, 0, 0, 0, nullptr, "scripting", "Manages functions.", function_subcommands},
      {"script", -2, 0, 0, 0, 0, nullptr, "scripting", "Manages scripts.", script_subcommands},
  };
  return commands;
}

}  // namespace weir::kv
