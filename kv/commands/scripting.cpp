// Scripts: EVAL and its kin, SCRIPT. What they do is in kv/scripts.
#include "kv/commands/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

void eval(const Call& call) { call.server.scripts->eval(call, false); }
void eval_ro(const Call& call) { call.server.scripts->eval(call, true); }
void evalsha(const Call& call) { call.server.scripts->eval_sha(call, false); }
void evalsha_ro(const Call& call) { call.server.scripts->eval_sha(call, true); }

void load(const Call& call) {
  const std::string sha = call.server.scripts->load(call, call[2]);
  if (!sha.empty()) call.reply.bulk(sha);
}

void exists(const Call& call) {
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i)
    call.reply.integer(call.server.scripts->knows(std::string(call[i])) ? 1 : 0);
}

void flush(const Call& call) {
  if (call.count() > 3 || (call.count() == 3 && !is_word(call[2], "SYNC") && !is_word(call[2], "ASYNC")))
    return call.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  call.server.scripts->flush();
  call.reply.ok();
}

void kill(const Call& call) { call.server.scripts->kill(call); }

// There is no debugger here to step with.
void debug(const Call& call) {
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

}  // namespace

std::span<const Command> scripting_commands() {
  using namespace flag;
  constexpr std::uint32_t runs = noscript | stale | skip_monitor | no_mandatory_keys | movablekeys;
  constexpr std::uint32_t writes = runs | may_replicate;
  constexpr std::uint32_t reads = runs | readonly;
  static constexpr Command script_subcommands[] = {
      of_script("debug", 3, noscript, debug, "Says that there is no debugger."),
      of_script("exists", -3, noscript, exists, "Tells which scripts are known."),
      of_script("flush", -2, noscript | may_replicate, flush, "Forgets all scripts."),
      of_script("help", 2, loading | stale, script_help, "Explains SCRIPT."),
      of_script("kill", 2, noscript | allow_busy, kill, "Ends the script that runs."),
      of_script("load", 3, noscript | stale, load, "Makes a script known by its SHA-1."),
  };
  static constexpr Command commands[] = {
      {"eval", -3, writes, 0, 0, 0, eval, "scripting", "Runs a script."},
      {"eval_ro", -3, reads, 0, 0, 0, eval_ro, "scripting", "Runs a script that only reads."},
      {"evalsha", -3, writes, 0, 0, 0, evalsha, "scripting", "Runs a script by its SHA-1."},
      {"evalsha_ro", -3, reads, 0, 0, 0, evalsha_ro, "scripting",
       "Runs a script by its SHA-1 that only reads."},
      {"script", -2, 0, 0, 0, 0, nullptr, "scripting", "Manages scripts.", script_subcommands},
  };
  return commands;
}

}  // namespace weir::kv
