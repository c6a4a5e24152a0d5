#include "kv/scripts/scripts.hpp"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <boost/container/small_vector.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <forward_list>

#include "kv/aof/kept.hpp"
#include "kv/commands/option_walk.hpp"
#include "kv/effects/effects.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/scripts/lua_values.hpp"
#include "kv/server/access_control.hpp"
#include "kv/server/blocking.hpp"
#include "kv/server/client.hpp"
#include "kv/server/server_common.hpp"
#include "kv/server/server_whole.hpp"

namespace weir::kv {

namespace {

// How long a resumed script runs before other clients get a turn.
constexpr std::int64_t turn_us = 5'000;

constexpr std::int64_t longest_load_us = 500'000;  // for loading a library, as in Redis

constexpr std::string_view killed_text =
    "ERR Error running script: Script killed by user with SCRIPT KILL...";
constexpr const char* this_name = "weir.scripts";

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

}  // namespace

void Scripts::stop() {
  running_.killed = true;
  while (suspended()) stack_.resume();
}

lua_State* Scripts::lua() {
  if (interpreter_ == nullptr) {
    interpreter_ = std::make_unique<Interpreter>(static_cast<std::size_t>(server_.settings.lua_memory_limit));
    lua_State* const lua = interpreter_->lua();
    push_redis_library(lua, *this);
    interpreter_->set_library("redis");
    push_loading_globals(lua, *this);
    lua_setfield(lua, LUA_REGISTRYINDEX, FunctionLibraries::loading_globals);
    lua_pushlightuserdata(lua, this);
    lua_setfield(lua, LUA_REGISTRYINDEX, this_name);
    cache_.on_gone = [this](int function) { luaL_unref(interpreter_->lua(), LUA_REGISTRYINDEX, function); };
  }
  return interpreter_->lua();
}

// On failure leaves the message on Lua's stack.
bool Scripts::compile(Script& script) {
  const std::string_view source = read_shebang(script.text, false)->source;
  if (luaL_loadbuffer(lua(), source.data(), source.size(), "@user_script") != 0) return false;
  script.function = luaL_ref(lua(), LUA_REGISTRYINDEX);
  return true;
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
  if (!compile(script)) {
    call.reply.error("ERR Error compiling script (new function): " + std::string(text_at(lua(), -1)));
    lua_pop(lua(), 1);
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
    if (!compile(fresh)) {
      call.reply.error("ERR Error compiling script (new function): " + std::string(text_at(lua(), -1)));
      return lua_pop(lua(), 1);
    }
    script = &cache_.add(sha, std::move(fresh));
  }
  run(call, *script, sha, read_only);
}

void Scripts::eval_sha(const Call& call, bool read_only) {
  const std::string_view given = call[1];
  std::array<char, sha1_hex_bytes> lower;
  Script* script = nullptr;
  if (given.size() == lower.size()) {
    std::ranges::transform(given, lower.begin(), absl::ascii_tolower);
    script = cache_.find({lower.data(), lower.size()});
  }
  if (script == nullptr) return call.reply.error("NOSCRIPT No matching script. Please use EVAL.");
  run(call, *script, {lower.data(), lower.size()}, read_only);
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
  lua_State* const lua = this->lua();
  if (script.function == Script::not_compiled && !compile(script)) {
    // It compiled before, so memory must have run out.
    call.reply.error("ERR " + std::string(text_at(lua, -1)));
    return lua_pop(lua, 1);
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
              .began_us = server_.surroundings.clock_us()};
  if (!may_begin(call, callee.flags, read_only)) return;
  interpreter_->restore();
  on_own_stack(call.client, [this, &call] { run_to_end(call); });
}

// Once the script runs, nothing of `call` may be used after a suspension.
void Scripts::run_to_end(const Call& call) {
  const Effects::Together in_one_piece(parts_.effects);  // lasts across suspensions
  lua_State* const lua = interpreter_->lua();
  Client& client = call.client;
  const int db = client.db;
  const bool in_exec = std::exchange(client.in_exec, true);
  client.in_script = true;
  const bool takes_arguments = running_.is_function;
  constexpr std::size_t first = 3;
  lua_pushcfunction(lua, locate_error);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, running_.function);
  push_words(call, first, first + running_.keys);
  if (!takes_arguments) interpreter_->set_global("KEYS");
  push_words(call, first + running_.keys, call.count());
  if (!takes_arguments) interpreter_->set_global("ARGV");
  lua_sethook(lua, on_count, LUA_MASKCOUNT, instructions_between_looks);
  const int status = lua_pcall(lua, takes_arguments ? 2 : 0, 1, 1);
  lua_sethook(lua, nullptr, 0, 0);
  if (status == 0) {
    reply_value(lua, client.reply, running_.protocol == Protocol::resp3);
  } else {
    reply_failure(client.reply);
  }
  lua_settop(lua, 0);
  client.in_script = false;
  client.in_exec = in_exec;
  client.db = db;
  running_.client = nullptr;
  tidy();
}

void Scripts::load_library(const Call& call, std::string_view text, bool replace) {
  const auto name = add_library(text, replace);
  if (!name) return call.reply.error(name.error());
  parts_.effects.changed_all();
  call.reply.bulk(*name);
}

void Scripts::call_function(const Call& call, bool read_only) {
  FunctionLibraries::Found found = libraries_.with_function(call[1]);
  if (found.library == nullptr) return call.reply.error("ERR Function not found");
  std::size_t keys = 0;
  if (!count_keys(call, keys, "ERR Bad number of keys provided")) return;
  if (!found.library->compiled) {
    auto again = libraries_.compile(lua(), found.library->text);
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
  reply.integer((server_.surroundings.clock_us() - running_.began_us) / 1000);
}

// Replies with the error on top of Lua's stack, including its place in the script.
void Scripts::reply_failure(Reply& reply) {
  lua_State* const lua = interpreter_->lua();
  const std::string& label = running_.label;
  std::string text;
  if (!lua_istable(lua, -1)) {
    // Lua had no memory left to make a table for the error.
    const char* message = lua_tostring(lua, -1);
    text = std::string("ERR ") + (message != nullptr ? message : "error in error handling") +
           " script: " + label;
    return reply.error(text);
  }
  lua_getfield(lua, -1, "err");
  text = lua_isstring(lua, -1) != 0 ? std::string(text_at(lua, -1)) : "ERR unknown error";
  text += " script: " + label;
  lua_getfield(lua, -2, "source");
  lua_getfield(lua, -3, "line");
  if (lua_isstring(lua, -2) != 0 && lua_isnumber(lua, -1) != 0) {
    text.append(", on ").append(text_at(lua, -2)).append(":").append(text_at(lua, -1)).append(".");
  }
  reply.error(text);
}

// A script may leave garbage, or hide data where nobody can reach it any more.
void Scripts::tidy() {
  const std::size_t half = interpreter_->memory_limit() / 2;
  if (interpreter_->memory() <= half) return;
  lua_gc(interpreter_->lua(), LUA_GCCOLLECT, 0);
  if (interpreter_->memory() <= half) return;
  cache_.forget_functions();
  libraries_.forget_functions();
  interpreter_.reset();
}

void Scripts::on_own_stack(Client& client, std::function<void()> work) {
  if (stack_.inside()) return work();
  holder_ = &client;
  turn_ends_us_ = 0;
  if (stack_.run(std::move(work))) return;
  client.script_runs = true;
  server_.script_suspended = true;
  server_.log(LogLevel::warning,
              "Slow script detected: still in execution after " +
                  std::to_string(server_.settings.busy_reply_threshold_ms) +
                  " milliseconds. You can try killing the script using the SCRIPT KILL command.");
  asio::post(server_.io, [this] { take_turn(); });
}

// Resumes the script with the clock of its start, so that nothing expires while it runs.
void Scripts::take_turn() {
  if (!suspended()) return;
  turn_ends_us_ = server_.surroundings.clock_us() + turn_us;
  const std::int64_t now_us = std::exchange(server_.now_us, running_.began_us);
  const std::int64_t now_ms = std::exchange(server_.now_ms, running_.began_us / 1000);
  server_.serving = holder_;
  const bool over = stack_.resume();
  server_.serving = nullptr;
  server_.now_us = now_us;
  server_.now_ms = now_ms;
  server_.refresh_time();
  if (over) {
    ended();
  } else {
    asio::post(server_.io, [this] { take_turn(); });
  }
  whole_.end_round();
}

void Scripts::ended() {
  Client& client = *std::exchange(holder_, nullptr);
  client.script_runs = false;
  server_.script_suspended = false;
  if (!client.closing) {
    if (client.replies() != Replies::on) client.end_of_command();
    client.will_resume();
  }
  if (parts_.blocking.ready()) parts_.blocking.serve();
}

void Scripts::client_ended(const Client& client) {
  if (holds(client) && !running_.wrote) running_.killed = true;
}

void Scripts::kill(const Call& call) {
  if (!suspended()) return call.reply.error("NOTBUSY No scripts in execution right now.");
  if (running_.wrote) {
    return call.reply.error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either "
        "wait "
        "the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.");
  }
  // SCRIPT KILL ends no function, and FUNCTION KILL no script.
  if (running_.is_function != (call.command.container == "function")) return call.reply.error(busy_text());
  running_.killed = true;
  call.reply.ok();
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

void Scripts::on_count(lua_State* lua, lua_Debug*) {
  lua_getfield(lua, LUA_REGISTRYINDEX, this_name);
  auto& self = *static_cast<Scripts*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  self.look_at_clock(lua);
}

void Scripts::look_at_clock(lua_State* lua) {
  const std::int64_t threshold_us = server_.settings.busy_reply_threshold_ms * 1000;
  const std::int64_t now_us = server_.surroundings.clock_us();
  if (running_.loads) {
    if (now_us - running_.began_us < longest_load_us) return;
    push_error(lua, "ERR FUNCTION LOAD timeout");
    lua_error(lua);
  }
  if (!running_.killed) {
    if (threshold_us <= 0) return;
    if (now_us - running_.began_us < threshold_us || now_us < turn_ends_us_) return;
    for (const Argument& word : std::exchange(running_.arguments, {})) running_.words.emplace_back(word.text);
    stack_.suspend();
    if (!running_.killed) return;
  }
  // Raise it again at the next instruction, because the script may catch the first one with pcall.
  lua_sethook(lua, on_count, LUA_MASKCOUNT, 1);
  push_error(lua, killed_text);
  lua_error(lua);
}

// The command that the words name, if a script may run it now; otherwise sets `refusal`.
const Command* Scripts::allowed_command(Arguments arguments, std::string_view& refusal) {
  const Command* command = find_command(arguments);
  if (command == nullptr) {
    refusal = "ERR Unknown Redis command called from script";
  } else if (!command->takes(arguments.size()) || command->run == nullptr) {
    refusal = "ERR Wrong number of args calling Redis command from script";
  } else if (denies && command->has(flag::noscript | flag::needs_permission)) {
    refusal = "ERR This Redis command is not allowed from script";
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
  } else if (command->has(flag::write) && parts_.snapshots.refuses_writes()) {
    refusal = Snapshots::writes_refused;
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
      if (command == nullptr) error = "ERR Invalid command passed to redis.acl_check_cmd()";
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
      command = allowed_command(words.arguments(), refusal);
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
  std::string_view rest = bytes;
  push_reply(lua, rest);
  if (bytes[0] != '-') return 1;
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, "ignore_error_stats_update");
  return raise ? lua_error(lua) : 1;
}

}  // namespace weir::kv
