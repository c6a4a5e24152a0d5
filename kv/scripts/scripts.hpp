// Runs scripts: EVAL and its kin, one at a time, each as one atomic step.
//
// A script runs on its own stack (own_stack.hpp). If it takes longer than a few milliseconds it is suspended
// regularly: the loop continues, and SCRIPT KILL, SHUTDOWN NOSAVE or a signal can end it. Requests of other
// clients wait; from busy-reply-threshold on they get BUSY. While the script is suspended no data changes:
// nothing expires or is evicted, and no blocked client is served.
//
// It looks at the clock when a library function has spent its steps (budget.hpp), after so many of Lua's
// instructions, and after the next one if some milliseconds have passed (nudge.hpp).
//
// Threading: the server's one thread.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/resp/reply_queue.hpp"
#include "kv/scripts/functions.hpp"
#include "kv/scripts/interpreter.hpp"
#include "kv/scripts/nudge.hpp"
#include "kv/scripts/own_stack.hpp"
#include "kv/scripts/redis_library.hpp"
#include "kv/scripts/script_cache.hpp"

namespace weir::kv {

class AccessControl;
class Blocking;
class Effects;
class ServerWhole;
struct ServerCommon;

namespace aof {
class AppendOnly;
}

class Scripts final : private RedisLibraryHost {
 public:
  // The parts of the server that scripts use.
  struct Parts {
    AccessControl& access;
    Blocking& blocking;
    Effects& effects;
    FunctionLibraries& libraries;
    const aof::AppendOnly& append_only;
  };

  Scripts(ServerCommon& server, ServerWhole& whole, Parts parts)
      : server_(server), whole_(whole), parts_(parts), libraries_(parts.libraries) {}
  ~Scripts() { stop(); }
  Scripts(const Scripts&) = delete;
  Scripts& operator=(const Scripts&) = delete;

  // EVAL text numkeys [key ...] [arg ...]; EVALSHA has a hash instead of the text. Both write the reply.
  void eval(const Call& call, bool read_only);
  void eval_sha(const Call& call, bool read_only);

  // SCRIPT LOAD: returns the hash. If the text is no script, replies with the error and returns an empty one.
  std::string load(const Call& call, std::string_view text);
  bool knows(const std::string& sha) { return cache_.find(sha) != nullptr; }
  // The script of a hash in any case, and that hash in lower case; null: it is not known.
  Script* find(std::string_view sha, std::array<char, sha1_hex_bytes>& lower);
  // Whether a call of EVAL, EVALSHA or FCALL names what declares that it changes nothing.
  bool declares_no_writes(const Command& command, Arguments words);
  void flush();
  void kill(const Call& call);
  // What other clients get while it runs for longer than busy-reply-threshold.
  std::string_view busy_text() const;
  // The suspended script has not run for that long: requests of other clients wait for it.
  bool others_wait() const { return suspended() && !announced_; }

  // FUNCTION LOAD, FCALL and FCALL_RO. They write the reply.
  void load_library(const Call& call, std::string_view text, bool replace);
  // Likewise without a client: returns the name, or the error as a reply.
  std::expected<std::string, std::string> add_library(std::string_view text, bool replace);
  // FUNCTION RESTORE: restores all of them or none.
  enum class RestorePolicy : std::uint8_t { append, replace, flush };
  std::expected<void, std::string> restore_libraries(const std::vector<std::string>& texts,
                                                     RestorePolicy policy);
  void call_function(const Call& call, bool read_only);
  bool remove_library(std::string_view name) { return libraries_.remove(lua(), name); }
  void flush_libraries() { libraries_.clear(lua()); }
  FunctionLibraries& libraries() { return libraries_; }
  // The running script and its start, for FUNCTION STATS.
  void reply_running(Reply& reply) const;
  // Ends a suspended script, whatever it has done, because the server ends.
  void stop();

  // For work in which scripts may run, such as EXEC: it is suspended together with them.
  void on_own_stack(Client& client, std::function<void()> work);

  // A script takes long and waits for its next turn.
  bool suspended() const { return stack_.suspended(); }
  // Whether the suspended work belongs to this client, which must then stay in place even if it has ended.
  bool holds(const Client& client) const { return suspended() && holder_ == &client; }
  // The client has ended. If its script is still running and has changed nothing, it is killed.
  void client_ended(const Client& client);

  // False for tests (DEBUG): scripts may call commands that are not for scripts.
  bool denies = true;

  std::size_t memory() const { return interpreter_ == nullptr ? 0 : interpreter_->memory(); }
  const ScriptCache& cache() const { return cache_; }

 private:
  // What to run: a script, which finds its arguments in KEYS and ARGV, or a function, which receives them.
  struct Callee {
    std::string_view label;  // for errors: a script's hash or a function's name
    ScriptFlags flags;
    int function = 0;  // in the registry of the interpreter
    bool takes_arguments = false;
  };
  // The running script.
  struct Running {
    std::string label;
    Arguments arguments;             // of the calling command; empty after the first suspension
    std::vector<std::string> words;  // copies of them since then
    Client* client = nullptr;
    ScriptFlags flags;
    int function = 0;      // as in Callee
    std::size_t keys = 0;  // how many of the arguments are keys
    bool is_function = false;
    bool read_only = false;
    bool no_room = false;  // maxmemory was reached when the script began
    bool wrote = false;
    bool killed = false;
    bool loads = false;                   // a library is being loaded: it may take half a second
    Protocol protocol = Protocol::resp2;  // of the replies that the script sees
    bool in_progress = false;             // from its first step on the stack to its last
    std::int64_t began_steady_us = 0;
  };

  struct Beginning {
    Scripts& scripts;
    const Call* call;
  };

  // Lua checks the clock after so many instructions, about every millisecond if they are short ones.
  static constexpr int instructions_between_looks = 100'000;

  // RedisLibraryHost
  int call(lua_State* lua, bool raise) override;
  int check_permission(lua_State* lua) override;
  int register_function(lua_State* lua) override { return libraries_.register_function(lua); }
  bool set_protocol(int version) override;
  void log(LogLevel level, std::string_view line) override;

  lua_State* lua();
  void reply_result(Reply& reply, int status);
  std::expected<FunctionLibrary, std::string> compile_library(std::string_view text);
  std::expected<void, std::string> compile(Script& script);
  void run(const Call& call, Script& script, std::string_view sha, bool read_only);
  void run(const Call& call, const Callee& callee, std::size_t keys, bool read_only);
  void run_to_end(const Call& call);
  bool may_begin(const Call& call, const ScriptFlags& flags, bool read_only) const;
  bool count_keys(const Call& call, std::size_t& keys, std::string_view no_number) const;
  void push_words(const Call& call, std::size_t from, std::size_t to) const;
  void reply_failure(Reply& reply);
  void tidy();
  void take_turn();
  void ended();
  const Command* allowed_command(Arguments arguments, bool in_words_of_redis, std::string_view& refusal);
  static int begin_script(lua_State* lua);
  static void on_count(lua_State* lua, lua_Debug* debug);
  void look_at_clock(lua_State* lua);
  void give_way();
  void announce();
  void resume_others();
  std::int64_t threshold_us() const;
  static std::int64_t steady_us();

  ServerCommon& server_;
  ServerWhole& whole_;
  const Parts parts_;
  std::unique_ptr<Interpreter> interpreter_;  // made with the first script
  ScriptCache cache_;
  FunctionLibraries& libraries_;
  OwnStack stack_;
  Running running_;
  Client* holder_ = nullptr;        // the client whose work is on the stack
  std::int64_t work_began_us_ = 0;  // these two are steady
  std::int64_t turn_ends_us_ = 0;
  std::int64_t stands_at_us_ = 0;  // time of the day, as the script or the transaction around it sees it
  bool announced_ = false;         // the suspended work exceeds busy-reply-threshold, and others get BUSY
  Nudge nudge_{on_count};
};

}  // namespace weir::kv
