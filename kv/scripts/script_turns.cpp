// The turns of a script that takes long: when it leaves its stack, when it goes on, and how it is ended.
#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <limits>

#include "kv/clients/blocking.hpp"
#include "kv/clients/client.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"
#include "kv/scripts/lua_values.hpp"
#include "kv/scripts/scripts.hpp"

namespace weir::kv {

namespace {

// How long a script runs before other clients get a turn: its first turn, and those when it is resumed.
constexpr std::int64_t first_turn_us = 20'000;
constexpr std::int64_t turn_us = 5'000;

constexpr std::string_view killed_text =
    "ERR Error running script: Script killed by user with SCRIPT KILL...";

}  // namespace

std::int64_t Scripts::steady_us() {
  using std::chrono::microseconds;
  return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Scripts::stop() {
  // A transaction may have more of them.
  while (suspended()) {
    running_.killed = true;
    stack_.resume();
  }
}

void Scripts::on_own_stack(Client& client, std::function<void()> work) {
  if (stack_.inside()) return work();
  holder_ = &client;
  stands_at_us_ = server_.now_us;
  work_began_us_ = steady_us();
  turn_ends_us_ = work_began_us_ + std::min(first_turn_us, threshold_us());
  if (stack_.run(std::move(work))) return;
  client.script_runs = true;
  server_.script_suspended = true;
  asio::post(server_.io, [this] { take_turn(); });
}

std::int64_t Scripts::threshold_us() const {
  const std::int64_t ms = server_.settings.busy_reply_threshold_ms;
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  return ms > 0 && ms <= never / 1000 ? ms * 1000 : never;
}

// From now on others do not wait, but get BUSY.
void Scripts::announce() {
  announced_ = true;
  server_.log(LogLevel::warning,
              "Slow script detected: still in execution after " +
                  std::to_string(server_.settings.busy_reply_threshold_ms) +
                  " milliseconds. You can try killing the script using the SCRIPT KILL command.");
  resume_others();
}

// Their requests are offered again.
void Scripts::resume_others() {
  for (const auto& [id, client] : server_.clients) client->will_resume();
}

// Resumes the script with the clock of its start, so that nothing expires while it runs.
void Scripts::take_turn() {
  if (!suspended()) return;
  if (!announced_ && steady_us() - work_began_us_ >= threshold_us()) announce();
  turn_ends_us_ = steady_us() + turn_us;
  const std::int64_t now_us = std::exchange(server_.now_us, stands_at_us_);
  const std::int64_t now_ms = std::exchange(server_.now_ms, stands_at_us_ / 1000);
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
  if (!std::exchange(announced_, false)) resume_others();
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

void Scripts::on_count(lua_State* lua, lua_Debug*) { Budget::of(lua).look(lua); }

// May suspend the script, which also ends it if it was killed.
void Scripts::look_at_clock(lua_State* lua) {
  constexpr std::int64_t longest_load_us = 500'000;  // for loading a library, as in Redis
  const bool load_ends = running_.loads && steady_us() - running_.began_steady_us >= longest_load_us;
  give_way();
  if (!load_ends && !running_.killed) {
    lua_sethook(lua, on_count, LUA_MASKCOUNT, instructions_between_looks);
    return;
  }
  // Raise it again at the next instruction, because the script may catch the first one with pcall.
  lua_sethook(lua, on_count, LUA_MASKCOUNT, 1);
  push_error(lua, load_ends ? "ERR FUNCTION LOAD timeout" : killed_text);
  lua_error(lua);
}

// Suspends the script if its turn is over.
void Scripts::give_way() {
  if (!running_.in_progress || running_.killed || !stack_.inside() || steady_us() < turn_ends_us_) return;
  for (const Argument& word : std::exchange(running_.arguments, {})) running_.words.emplace_back(word.text);
  nudge_.watch(nullptr);
  stack_.suspend();
  if (interpreter_ != nullptr) nudge_.watch(&interpreter_->budget());  // it may just be taken apart
}

}  // namespace weir::kv
