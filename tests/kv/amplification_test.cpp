// What bytes from a client may cost: memory and time for a byte of RESP, and for scripts how long they can
// keep the server from everything else. A table of shapes whose sizes come from a seed; the bound stands in
// the row. Replaces operator new to count the heap.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <lua.hpp>
#include <random>
#include <string>

#include "kv/resp/request.hpp"
#include "kv/scripts/interpreter.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {
namespace {

double processor_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

std::uint64_t seed() {
  const char* const given = std::getenv("WEIR_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

struct Request {
  const char* what;
  std::function<std::string(std::size_t n)> bytes;
  std::size_t largest;  // of n
  double memory;        // at most so many bytes for each that came
};

// A list of arguments takes 24 bytes for each of at least six that came, and grows by doubling; a word of an
// inline request is a string.
const Request requests[] = {
    {"empty arguments",
     [](std::size_t n) { return "*" + std::to_string(n) + "\r\n" + repeated("$0\r\n\r\n", n); }, 200'000, 16},
    {"short arguments",
     [](std::size_t n) { return "*" + std::to_string(n) + "\r\n" + repeated("$4\r\nabcd\r\n", n); }, 200'000,
     12},
    {"one long argument",
     [](std::size_t n) { return "*1\r\n$" + std::to_string(n) + "\r\n" + std::string(n, 'x') + "\r\n"; },
     4 << 20, 2},
    {"long arguments",
     [](std::size_t n) {
       return "*64\r\n" + repeated("$" + std::to_string(n) + "\r\n" + std::string(n, 'x') + "\r\n", 64);
     },
     100'000, 2},
    {"inline words", [](std::size_t n) { return repeated("a ", n) + "\r\n"; }, 32'000, 128},
    {"quoted words", [](std::size_t n) { return repeated("\"\" ", n) + "\r\n"; }, 21'000, 96},
    {"escapes", [](std::size_t n) { return "\"" + repeated("\\x00", n) + "\"\r\n"; }, 16'000, 4},
    {"empty requests", [](std::size_t n) { return repeated("*0\r\n", n); }, 200'000, 1},
    {"a claim of many arguments",
     [](std::size_t n) { return "*2147483647\r\n" + repeated("$1\r\nx\r\n", n); }, 200'000, 14},
    {"a claim of a long argument",
     [](std::size_t n) { return "*1\r\n$500000000\r\n" + std::string(n % 1000, 'x'); }, 1000, 1},
};

// In pieces, as they come from a socket. Returns the most that it took beside them.
std::size_t parse(const std::string& bytes, std::mt19937_64& random) {
  const std::size_t before = used_memory();
  std::size_t most = before;
  RequestParser parser;
  std::string pending;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto place = parser.wanted();
    const std::size_t piece = std::min<std::size_t>(1 + random() % 65'536, bytes.size() - at);
    if (!place.empty()) {
      const std::size_t direct = std::min(place.size(), piece);
      std::copy_n(bytes.data() + at, direct, place.data());
      parser.filled(direct);
      at += direct;
      if (direct < place.size()) continue;
    } else {
      pending.append(bytes, at, piece);
      at += piece;
    }
    std::size_t used = 0;
    for (;;) {
      const auto status = parser.parse(std::string_view(pending).substr(used), {});
      most = std::max(most, used_memory());
      if (status == RequestParser::Status::failed) return most - before;
      if (status == RequestParser::Status::incomplete) {
        pending.resize(used + std::min(parser.kept(), pending.size() - used));
        break;
      }
      used += parser.consumed();
      parser.next();
      if (used == pending.size()) break;
    }
    pending.erase(0, used);
  }
  return most - before;
}

TEST(RespAmplification, is_bounded_in_memory_and_time) {
  constexpr double us_a_byte = 1;  // some 5 ns here; a machine may be slow
  // What is received at once, and the first block of a large argument.
  constexpr std::size_t fixed = RequestParser::first_block + 300'000;
  std::mt19937_64 random(seed());
  for (const Request& row : requests) {
    double worst_memory = 0, worst_us = 0;
    for (int round = 0; round < 20; ++round) {
      const std::string bytes = row.bytes(row.largest / 2 + random() % (row.largest / 2));
      const double begun = processor_us();
      const auto memory = static_cast<double>(parse(bytes, random));
      const double us = processor_us() - begun;
      const auto came = static_cast<double>(bytes.size());
      EXPECT_LE(memory, row.memory * came + fixed) << row.what << ", WEIR_SEED=" << seed();
      EXPECT_LE(us, us_a_byte * came + 1'000) << row.what << ", WEIR_SEED=" << seed();
      worst_memory = std::max(worst_memory, memory / came);
      worst_us = std::max(worst_us, us / came);
    }
    std::printf("%-28s %6.1f bytes of memory and %6.3f us a byte\n", row.what, worst_memory, worst_us);
  }
}

struct Script {
  const char* what;
  const char* text;     // gets n
  std::size_t largest;  // of n
  double looks = 0;     // at the clock: at least so many for each of n
};

// `decode` and the like of texts that a script can hold.
const Script scripts[] = {
    {"cjson.decode of numbers", "return cjson.decode('[' .. ('1,'):rep(n) .. '1]')", 3'000'000, 50e-6},
    {"cjson.decode of long numbers", "return cjson.decode('[' .. ('1.2345678901234e-300,'):rep(n) .. '1]')",
     600'000, 50e-6},
    {"cjson.decode of arrays", "return cjson.decode('[' .. ('[],'):rep(n) .. '1]')", 300'000},
    {"cjson.decode of texts", "return cjson.decode('[' .. ('\"\\\\u0041\",'):rep(n) .. '1]')", 1'000'000},
    {"cjson.decode of null", "return cjson.decode('[' .. ('null,'):rep(n) .. '1]')", 1'500'000},
    {"cjson.decode of true", "return cjson.decode('[' .. ('true,'):rep(n) .. '1]')", 1'500'000},
    {"cjson.decode of spaces", "return cjson.decode('[' .. (' '):rep(n) .. '1]')", 15'000'000},
    {"cjson.decode of one text", "return cjson.decode('[\"' .. ('a'):rep(n) .. '\"]')", 10'000'000},
    {"cjson.decode of escapes", "return cjson.decode('[\"' .. ('\\\\n'):rep(n) .. '\"]')", 5'000'000},
    {"cjson.encode of numbers", "local t = {} for i = 1, n do t[i] = i / 7 end return #cjson.encode(t)",
     1'000'000, 50e-6},
    {"cjson.encode of true", "local t = {} for i = 1, n do t[i] = true end return #cjson.encode(t)",
     1'000'000},
    {"cjson.encode of one text", "return #cjson.encode({('\\0'):rep(n)})", 4'000'000},
    {"cmsgpack of numbers",
     "local t = {} for i = 1, n do t[i] = i end return #{cmsgpack.unpack(cmsgpack.pack(t))}", 1'000'000},
    {"table.concat", "local t = {} for i = 1, n do t[i] = 'ab' end return #table.concat(t)", 1'000'000},
    {"table.sort", "local t = {} for i = 1, n do t[i] = i * 7919 % 1e6 end table.sort(t)", 200'000},
    {"string.rep", "return #('abc'):rep(n)", 8'000'000},
    {"string.format", "return #('%s'):format(('a'):rep(n))", 8'000'000},
    {"string.gsub", "return #('a'):rep(n):gsub('a', 'b')", 8'000'000},
    {"string.find", "return ('a'):rep(n):find('.-.-b')", 600},
    {"string.byte", "local s = ('a'):rep(n) for i = 1, 1000 do s:byte(1, 7000) end", 100'000},
    {"joining", "local s = '' for i = 1, 40 do s = s .. ('a'):rep(n) end return #s", 400'000},
    {"comparing", "local a, b = ('a'):rep(n), ('a'):rep(n) .. 'b' return a < b", 10'000'000},
    {"tonumber", "return tonumber(('1'):rep(n))", 10'000'000},
    {"loadstring", "return loadstring(('x=1 '):rep(n))", 300'000},
    {"a table of many", "local t = {} for i = 1, n do t[i .. ''] = i end return #t", 200'000},
    {"unpack", "local t = {} for i = 1, n do t[i] = i end return select('#', unpack(t, 1, 7000))", 1'000'000},
    {"collectgarbage", "local t = {} for i = 1, n do t[i] = {} end t = nil collectgarbage()", 500'000},
    {"bit.tohex", "for i = 1, n do bit.tohex(i) end", 300'000},
    {"struct.pack", "return #struct.pack(('x'):rep(n))", 1'000'000},
    {"coroutines", "for i = 1, n do coroutine.wrap(function() end)() end", 100'000},
};

// What a script does between two looks keeps all other clients waiting.
TEST(LuaAmplification, looks_at_the_clock_often) {
  // One step copies, compares or clears at most what the script may hold; most of it are page faults.
  constexpr double ns_a_byte = 4;
  constexpr std::size_t memory_limit = 64 << 20;
  constexpr double longest_us = ns_a_byte * memory_limit / 1'000;
  std::mt19937_64 random(seed());
  for (const Script& row : scripts) {
    double last = 0, longest = 0;
    const auto look = [&] {
      const double now = processor_us();
      longest = std::max(longest, now - last);
      last = processor_us();
    };
    Interpreter interpreter(memory_limit);  // ends before what it looks by
    lua_State* const lua = interpreter.lua();
    interpreter.budget().look = [&](lua_State*) { look(); };
    interpreter.budget().give_way = look;
    const std::size_t n = row.largest / 2 + random() % (row.largest / 2);
    const std::string text = "local n = ... " + std::string(row.text);
    ASSERT_EQ(luaL_loadbuffer(lua, text.data(), text.size(), row.what), 0) << lua_tostring(lua, -1);
    lua_pushnumber(lua, static_cast<double>(n));
    // As scripts run: the hook looks after so many instructions.
    lua_sethook(
        lua, [](lua_State* in, lua_Debug*) { Budget::of(in).spend(in, 10'000); }, LUA_MASKCOUNT, 10'000);
    const double begun = last = processor_us();
    int failed = 0;
    {
      const Budget::Limited limited(interpreter.budget());
      failed = lua_pcall(lua, 1, 0, 0);
    }
    look();
    const double us = last - begun;
    EXPECT_GE(static_cast<double>(interpreter.budget().looks()), row.looks * static_cast<double>(n))
        << row.what;
    EXPECT_LE(longest, longest_us) << row.what << " of " << n << ", WEIR_SEED=" << seed();
    std::printf("%-28s %9zu: %7.1f ms, %6.3f us each, longest step %6.2f ms%s%s\n", row.what, n, us / 1e3,
                us / static_cast<double>(n), longest / 1e3, failed != 0 ? ": " : "",
                failed != 0 ? lua_tostring(lua, -1) : "");
  }
}

}  // namespace
}  // namespace weir::kv
