#include "kv/scripts/scripts.hpp"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <forward_list>

#include "kv/clients/access_control.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/core/kept.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"
#include "kv/effects/effects.hpp"
#include "kv/scripts/lua_values.hpp"

namespace weir::kv {

namespace {

// What "%.17g" writes, as in Redis.
std::string text_of(lua_Number number) {
  char digits[64];
  constexpr lua_Number exact = 1e15;  // whole numbers below it are written without an exponent
  const bool whole = number > -exact && number < exact && number == std::trunc(number);
  if (whole && !(number == 0 && std::signbit(number)))
    return {digits, std::to_chars(digits, std::end(digits), static_cast<std::int64_t>(number)).ptr};
  return {digits, static_cast<std::size_t>(std::snprintf(digits, sizeof digits, "%.17g", number))};
}

// The arguments of redis.call as words. Few of them take no memory of their own.
class Words {
 public:
  // False: an argument is neither text nor number.
  bool take(lua_State* lua) {
    const int count = lua_gettop(lua);
    words_.reserve(static_cast<std::size_t>(count));
    for (int i = 1; i <= count; ++i) {
      if (lua_type(lua, i) == LUA_TNUMBER) {
        words_.push_back({numbers_.emplace_front(text_of(lua_tonumber(lua, i))), nullptr});
      } else if (lua_type(lua, i) == LUA_TSTRING) {
        words_.push_back({text_at(lua, i), nullptr});
      } else {
        return false;
      }
    }
    return true;
  }
  Arguments arguments() const { return {words_.data(), words_.size()}; }

 private:
  std::forward_list<std::string> numbers_;
  boost::container::small_vector<Argument, 8> words_;
};

std::string take_bytes(ReplyQueue& queue) {
  std::string bytes;
  bytes.reserve(queue.size());
  std::array<iovec, 16> pieces;
  while (!queue.empty()) {
    const std::size_t before = bytes.size();
    const std::size_t count = queue.gather(pieces.data(), pieces.size());
    for (std::size_t i = 0; i < count; ++i)
      bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
    queue.consume(bytes.size() - before);
  }
  return bytes;
}

void pass_on(ReplyQueue& from, Reply& to) {
  std::array<iovec, 16> pieces;
  while (!from.empty()) {
    const std::size_t count = from.gather(pieces.data(), pieces.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      to.raw({static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len});
      bytes += pieces[i].iov_len;
    }
    from.consume(bytes);
  }
}

// What run_to_end() puts on Lua's stack below the script.
constexpr int locator = 1;
constexpr int result_writer = 2;
constexpr int failure_describer = 3;

// Writes the value at 1 to the target at 2.
int write_result(lua_State* lua) {
  const auto& to = *static_cast<const ResultTarget*>(lua_touserdata(lua, 2));
  lua_settop(lua, 1);
  write_value(lua, to);
  return 0;
}

// Returns the text of the error at 1, and its place in the script or nil.
int describe_failure(lua_State* lua) {
  const auto field = [lua](const char* name) {
    lua_pushstring(lua, name);
    lua_rawget(lua, 1);
    return lua_isstring(lua, -1) != 0;
  };
  if (!lua_istable(lua, 1)) {
    // Lua had no memory left to make a table for the error.
    const char* message = lua_tostring(lua, 1);
    lua_pushfstring(lua, "ERR %s", message != nullptr ? message : "error in error handling");
    lua_pushnil(lua);
    return 2;
  }
  if (!field("err")) lua_pushliteral(lua, "ERR unknown error");
  lua_tostring(lua, -1);  // if it is a number
  const int text = lua_gettop(lua);
  const bool placed = field("source") && field("line");
  if (!placed) {
    lua_settop(lua, text);
    lua_pushnil(lua);
    return 2;
  }
  lua_pushliteral(lua, ":");
  lua_insert(lua, -2);
  lua_concat(lua, 3);
  return 2;
}

}  // namespace

lua_State* Scripts::lua() {
  if (interpreter_ == nullptr) {
    interpreter_ = std::make_unique<Interpreter>(static_cast<std::size_t>(server_.settings.lua_memory_limit));
    lua_State* const lua = interpreter_->lua();
    for (const char* name : {"redis", "server"}) {
      push_redis_library(lua, *this, name);
      interpreter_->set_library(name);
    }
    push_loading_globals(lua, *this);
    lua_setfield(lua, LUA_REGISTRYINDEX, FunctionLibraries::loading_globals);
    interpreter_->budget().look = [this](lua_State* running) { look_at_clock(running); };
    interpreter_->budget().give_way = [this] { give_way(); };
    cache_.on_gone = [this](int function) { luaL_unref(interpreter_->lua(), LUA_REGISTRYINDEX, function); };
  }
  return interpreter_->lua();
}

std::expected<void, std::string> Scripts::compile(Script& script) {
  const std::string_view source = read_shebang(script.text, false)->source;
  lua_State* const lua = this->lua();
  const int status = [&] {
    const Budget::Limited limited(interpreter_->budget());
    return luaL_loadbuffer(lua, source.data(), source.size(), "@user_script");
  }();
  if (status == 0) {
    script.function = luaL_ref(lua, LUA_REGISTRYINDEX);
    return {};
  }
  std::string problem(text_at(lua, -1));
  lua_pop(lua, 1);
  tidy();
  return std::unexpected(std::move(problem));
}

std::string Scripts::load(const Call& call, std::string_view text) {
  std::string sha = sha1_hex(text);
  if (Script* known = cache_.find(sha)) {
    cache_.keep(*known);
    return sha;
  }
  const auto shebang = read_shebang(text, false);
  if (!shebang) return call.reply.error(shebang.error()), std::string();
  Script script{.text = std::string(text), .flags = shebang->flags, .loaded = true, .use = {}};
  if (const auto done = compile(script); !done) {
    call.reply.error("ERR Error compiling script (new function): " + done.error());
    return {};
  }
  cache_.add(sha, std::move(script));
  return sha;
}

void Scripts::eval(const Call& call, bool read_only) {
  const std::string sha = sha1_hex(call[1]);
  Script* script = cache_.find(sha);
  if (script == nullptr) {
    const auto shebang = read_shebang(call[1], false);
    if (!shebang) return call.reply.error(shebang.error());
    Script fresh{.text = std::string(call[1]), .flags = shebang->flags, .use = {}};
    if (const auto done = compile(fresh); !done)
      return call.reply.error("ERR Error compiling script (new function): " + done.error());
    script = &cache_.add(sha, std::move(fresh));
  }
  run(call, *script, sha, read_only);
}

void Scripts::eval_sha(const Call& call, bool read_only) {
  std::array<char, sha1_hex_bytes> lower;
  Script* script = find(call[1], lower);
  if (script == nullptr) return call.reply.error("NOSCRIPT No matching script. Please use EVAL.");
  run(call, *script, {lower.data(), lower.size()}, read_only);
}

Script* Scripts::find(std::string_view sha, std::array<char, sha1_hex_bytes>& lower) {
  if (sha.size() != lower.size()) return nullptr;
  std::ranges::transform(sha, lower.begin(), absl::ascii_tolower);
  return cache_.find({lower.data(), lower.size()});
}

void Scripts::flush() {
  cache_.clear();
  libraries_.forget_functions();
  interpreter_.reset();
}

// Checks whether a script with declared flags may begin; if not, replies with the error.
bool Scripts::may_begin(const Call& call, const ScriptFlags& flags, bool read_only) const {
  if (!flags.declared) return true;
  if (const auto refusal = whole_.write_refusal(); !flags.no_writes && !refusal.empty())
    return call.reply.error(refusal), false;
  if (read_only && !flags.no_writes)
    return call.reply.error("ERR Can not execute a script with write flag using *_ro command."), false;
  if (running_.no_room && !flags.allow_oom && !flags.no_writes) {
    call.reply.error(
        "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'");
    return false;
  }
  return true;
}

// Reads the number of keys; replies with an error if it is not a number or too large.
bool Scripts::count_keys(const Call& call, std::size_t& keys, std::string_view no_number) const {
  const CountedKeys counted = counted_keys_in(call.arguments, 2);
  switch (counted.wrong) {
    case CountedKeys::Wrong::nothing:
      keys = counted.keys.size();
      return true;
    case CountedKeys::Wrong::number:
      call.reply.error(no_number);
      return false;
    case CountedKeys::Wrong::negative:
      call.reply.error("ERR Number of keys can't be negative");
      return false;
    case CountedKeys::Wrong::too_many:
      call.reply.error("ERR Number of keys can't be greater than number of args");
      return false;
  }
  return false;
}

// Pushes a table of the call's words [from, to).
void Scripts::push_words(const Call& call, std::size_t from, std::size_t to) const {
  lua_State* const lua = interpreter_->lua();
  lua_createtable(lua, static_cast<int>(to - from), 0);
  for (std::size_t i = from; i < to; ++i) {
    lua_pushlstring(lua, call[i].data(), call[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i - from) + 1);
  }
}

void Scripts::run(const Call& call, Script& script, std::string_view sha, bool read_only) {
  std::size_t keys = 0;
  if (!count_keys(call, keys, "ERR value is not an integer or out of range")) return;
  if (script.function == Script::not_compiled) {
    // It compiled before, so memory must have run out.
    if (const auto done = compile(script); !done) return call.reply.error("ERR " + done.error());
  }
  cache_.used(script);
  run(call, Callee{.label = sha, .flags = script.flags, .function = script.function}, keys, read_only);
}

void Scripts::run(const Call& call, const Callee& callee, std::size_t keys, bool read_only) {
  std::string label = std::move(running_.label);  // its memory serves again
  label = callee.label;
  running_ = {.label = std::move(label),
              .arguments = call.arguments,
              .words = {},
              .client = &call.client,
              .flags = callee.flags,
              .function = callee.function,
              .keys = keys,
              .is_function = callee.takes_arguments,
              .read_only = read_only || callee.flags.no_writes,
              .no_room = server_.settings.maxmemory > 0 && !whole_.make_room(),
              .began_steady_us = steady_us()};
  if (!may_begin(call, callee.flags, read_only)) return;
  interpreter_->restore();
  on_own_stack(call.client, [this, &call] { run_to_end(call); });
}

// Once the script runs, nothing of `call` may be used after a suspension.
void Scripts::run_to_end(const Call& call) {
  const Effects::Together in_one_piece(parts_.effects);  // lasts across suspensions
  lua_State* const lua = interpreter_->lua();
  Budget& budget = interpreter_->budget();
  Client& client = call.client;
  const int db = client.db;
  const bool in_exec = std::exchange(client.in_exec, true);
  client.in_script = true;
  budget.runs(lua);
  nudge_.watch(&budget);
  lua_pushcfunction(lua, locate_error);
  lua_pushcfunction(lua, write_result);
  lua_pushcfunction(lua, describe_failure);
  Beginning beginning{.scripts = *this, .call = &call};
  lua_pushcfunction(lua, begin_script);
  lua_pushlightuserdata(lua, &beginning);
  lua_sethook(lua, on_count, LUA_MASKCOUNT, instructions_between_looks);
  const int status = [&] {
    const Budget::Limited limited(budget);
    return lua_pcall(lua, 1, 1, locator);
  }();
  lua_sethook(lua, nullptr, 0, 0);
  reply_result(client.reply, status);
  lua_settop(lua, 0);
  client.in_script = false;
  client.in_exec = in_exec;
  client.db = db;
  tidy();
  running_.in_progress = false;
  running_.client = nullptr;
  nudge_.watch(nullptr);
}

// Within lua_pcall: there may be no memory for the arguments.
int Scripts::begin_script(lua_State* lua) {
  const Beginning beginning = *static_cast<Beginning*>(lua_touserdata(lua, 1));
  Scripts& self = beginning.scripts;
  const Call& call = *beginning.call;
  const bool takes_arguments = self.running_.is_function;
  constexpr std::size_t first = 3;
  const std::size_t keys = self.running_.keys;
  lua_rawgeti(lua, LUA_REGISTRYINDEX, self.running_.function);
  self.push_words(call, first, first + keys);
  if (!takes_arguments) self.interpreter_->set_global("KEYS");
  self.push_words(call, first + keys, call.count());
  if (!takes_arguments) self.interpreter_->set_global("ARGV");
  self.running_.in_progress = true;  // from here on it may be suspended
  lua_call(lua, takes_arguments ? 2 : 0, 1);
  return 1;
}

void Scripts::load_library(const Call& call, std::string_view text, bool replace) {
  const auto name = add_library(text, replace);
  if (!name) return call.reply.error(name.error());
  parts_.effects.changed_all();
  call.reply.bulk(*name);
}

bool Scripts::declares_no_writes(const Command& command, Arguments words) {
  if (command.group != "scripting" || !command.container.empty() || words.size() < 2) return false;
  const std::string_view named = words[1].text;
  if (command.name == "fcall") {
    const FunctionLibraries::Found found = libraries_.with_function(named);
    return found.library != nullptr && found.library->functions.find(found.function)->second.flags.no_writes;
  }
  if (command.name == "evalsha") {
    std::array<char, sha1_hex_bytes> lower;
    const Script* script = find(named, lower);
    return script != nullptr && script->flags.no_writes;
  }
  const auto shebang = read_shebang(named, false);
  return shebang && shebang->flags.no_writes;
}

void Scripts::call_function(const Call& call, bool read_only) {
  FunctionLibraries::Found found = libraries_.with_function(call[1]);
  if (found.library == nullptr) return call.reply.error("ERR Function not found");
  std::size_t keys = 0;
  if (!count_keys(call, keys, "ERR Bad number of keys provided")) return;
  if (!found.library->compiled) {
    auto again = compile_library(found.library->text);
    if (!again) return call.reply.error(again.error());
    libraries_.add(lua(), std::move(*again));
    found = libraries_.with_function(call[1]);
    if (found.library == nullptr) return call.reply.error("ERR Function not found");
  }
  const Function& function = found.library->functions.find(found.function)->second;
  run(call,
      Callee{.label = found.function,
             .flags = function.flags,
             .function = function.reference,
             .takes_arguments = true},
      keys, read_only);
}

void Scripts::reply_running(Reply& reply) const {
  if (!suspended()) return reply.null();
  reply.map(3);
  reply.bulk("name");
  reply.bulk(running_.label);
  reply.bulk("command");
  reply.array(running_.words.size());
  for (const std::string& word : running_.words) reply.bulk(word);
  reply.bulk("duration_ms");
  reply.integer((steady_us() - running_.began_steady_us) / 1000);
}

// Replies with what the script returned, or with the error if `status` is one; it is on top of Lua's stack.
void Scripts::reply_result(Reply& reply, int status) {
  lua_State* const lua = interpreter_->lua();
  if (status != 0) return reply_failure(reply);
  ReplyQueue written(server_.blocks);
  const ResultTarget target{
      .reply = reply, .queue = written, .booleans = running_.protocol == Protocol::resp3};
  if (!lua_istable(lua, -1)) return write_scalar(lua, target);
  // Tables need memory, and may have no end, so they are written aside.
  {
    const Reply::Diverting divert(reply, written, reply.protocol);
    lua_pushvalue(lua, result_writer);
    lua_insert(lua, -2);
    lua_pushlightuserdata(lua, const_cast<ResultTarget*>(&target));
    const Budget::Limited limited(interpreter_->budget());
    status = lua_pcall(lua, 2, 0, 0);
  }
  status == 0 ? pass_on(written, reply) : reply_failure(reply);
}

// Replies with the error on top of Lua's stack, including its place in the script.
void Scripts::reply_failure(Reply& reply) {
  lua_State* const lua = interpreter_->lua();
  // Reading the error may fail as well.
  lua_pushvalue(lua, failure_describer);
  lua_insert(lua, -2);
  const bool described = lua_pcall(lua, 1, 2, 0) == 0;
  std::string text(described ? text_at(lua, -2) : "ERR error in error handling");
  text.append(" script: ").append(running_.label);
  if (described && !lua_isnil(lua, -1)) text.append(", on ").append(text_at(lua, -1)).append(".");
  reply.error(text);
}

// A script may leave garbage, or hide data where nobody can reach it any more.
void Scripts::tidy() {
  interpreter_->budget().runs(nullptr);
  const std::size_t half = interpreter_->memory_limit() / 2;
  if (interpreter_->memory() <= half) return;
  lua_gc(interpreter_->lua(), LUA_GCCOLLECT, 0);
  if (interpreter_->memory() <= half) return;
  cache_.forget_functions();
  libraries_.forget_functions();
  interpreter_.reset();
}

std::string_view Scripts::busy_text() const {
  return running_.is_function
             ? "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
             : "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
}

void Scripts::log(LogLevel level, std::string_view line) { server_.log(level, line); }

bool Scripts::set_protocol(int version) {
  if (version != 2 && version != 3) return false;
  running_.protocol = static_cast<Protocol>(version);
  return true;
}

namespace {

// Commands that scripts may call since Redis 7.2, in which they do not wait. COMMAND INFO tells their flags
// as 7.0 does.
bool only_waits(const Command& command) {
  return command.has(flag::blocking) || command.name == "wait" || command.name == "waitaof";
}

}  // namespace

// The command that the words name, if a script may run it now; otherwise sets `refusal`, which has the words
// of Redis or, for scripts that say server.call, of Valkey.
const Command* Scripts::allowed_command(Arguments arguments, bool in_words_of_redis,
                                        std::string_view& refusal) {
  const Command* command = find_command(arguments);
  if (command == nullptr) {
    refusal = in_words_of_redis ? "ERR Unknown Redis command called from script"
                                : "ERR Unknown command called from script";
  } else if (!command->takes(arguments.size()) || command->run == nullptr) {
    refusal = in_words_of_redis ? "ERR Wrong number of args calling Redis command from script"
                                : "ERR Wrong number of args calling command from script";
  } else if (denies && command->has(flag::noscript | flag::needs_permission) && !only_waits(*command)) {
    refusal = in_words_of_redis ? "ERR This Redis command is not allowed from script"
                                : "ERR This command is not allowed from script";
  } else if (const auto denied =
                 parts_.access.refusal(*running_.client, *command, arguments, acl::Context::lua)) {
    refusal =
        *denied == acl::Denied::command
            ? "ERR The user executing the script can't run this command or subcommand"
        : *denied == acl::Denied::key
            ? "ERR The user executing the script can't access at least one of the keys mentioned in the "
              "command arguments"
            : "ERR The user executing the script can't publish to the channel mentioned in the command";
  } else if (running_.read_only && command->has(flag::write | flag::may_replicate)) {
    refusal = "ERR Write commands are not allowed from read-only scripts.";
  } else if (command->has(flag::write) && !aof::refusal(parts_.append_only).empty()) {
    refusal = aof::refusal(parts_.append_only);
  } else if (command->has(flag::denyoom) && running_.no_room && !running_.wrote &&
             !running_.flags.allow_oom) {
    refusal = "OOM command not allowed when used memory > 'maxmemory'.";
  } else if (command->has(flag::write) && !running_.wrote && !whole_.write_refusal().empty()) {
    refusal = whole_.write_refusal();
  } else if (command->has(flag::write) && !whole_.snapshot_refusal().empty()) {
    refusal = whole_.snapshot_refusal();
  } else {
    return command;
  }
  return nullptr;
}

int Scripts::check_permission(lua_State* lua) {
  if (running_.client == nullptr)
    return luaL_error(lua, "redis.acl_check_cmd can only be called inside a script invocation");
  const char* error = nullptr;
  {
    Words words;
    const Command* command = nullptr;
    if (lua_gettop(lua) == 0) {
      error = "ERR Please specify at least one argument for this redis lib call";
    } else if (!words.take(lua)) {
      error = "ERR Lua redis lib command arguments must be strings or integers";
    } else {
      const Arguments arguments = words.arguments();
      command = find_command(arguments);
      if (command == nullptr) {
        error = called_by_redis_name(lua) ? "ERR Invalid command passed to redis.acl_check_cmd()"
                                          : "ERR Invalid command passed to server.acl_check_cmd()";
      }
    }
    if (command != nullptr)
      lua_pushboolean(lua, acl::denial(*running_.client->user, *command, words.arguments()) ? 0 : 1);
  }
  if (error == nullptr) return 1;
  push_error(lua, error);
  return lua_error(lua);
}

int Scripts::call(lua_State* lua, bool raise) {
  if (running_.client == nullptr)
    return luaL_error(lua, "redis.call can only be called inside a script invocation");
  std::string bytes;
  {
    Words words;
    std::string_view refusal;
    const Command* command = nullptr;
    if (lua_gettop(lua) == 0) {
      refusal = "ERR Please specify at least one argument for this redis lib call";
    } else if (!words.take(lua)) {
      refusal = "ERR Lua redis lib command arguments must be strings or integers";
    } else {
      command = allowed_command(words.arguments(), called_by_redis_name(lua), refusal);
    }
    if (command == nullptr) {
      bytes.append("-").append(refusal).append("\r\n");
    } else {
      running_.wrote |= command->has(flag::write);
      ReplyQueue captured(server_.blocks);
      try {
        const Reply::Diverting divert(running_.client->reply, captured, running_.protocol);
        whole_.run(*running_.client, *command, words.arguments());
      } catch (const std::bad_alloc&) {
        captured.clear();
        captured.append("-ERR no memory for this command\r\n");
      }
      bytes = take_bytes(captured);
    }
  }
  lua_settop(lua, 0);  // thousands of arguments may leave no room for the reply
  std::string_view rest = bytes;
  push_reply(lua, rest);
  if (bytes[0] != '-') return 1;
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, "ignore_error_stats_update");
  return raise ? lua_error(lua) : 1;
}

}  // namespace weir::kv
