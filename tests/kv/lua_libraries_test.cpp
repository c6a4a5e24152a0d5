// Our string, table and coroutine functions against those of Lua 5.1 itself: the same calls in two
// interpreters must end the same way, errors included. And what ours bound that Lua's do not.
#include <gtest/gtest.h>

#include <lua.hpp>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kv/scripts/budget.hpp"
#include "kv/scripts/coroutines.hpp"
#include "kv/scripts/string_library.hpp"
#include "kv/scripts/table_library.hpp"

namespace weir::kv::testing {
namespace {

using Value = std::variant<std::string, double, std::monostate>;

// An interpreter with Lua's libraries, or with ours in their place.
class Interpreter {
 public:
  Interpreter() : lua_(luaL_newstate()) { luaL_openlibs(lua_.get()); }
  explicit Interpreter(std::size_t memory_limit)
      : budget_(std::make_unique<Budget>(memory_limit)), lua_(lua_newstate(Budget::allocate, budget_.get())) {
    luaL_openlibs(lua_.get());
    replace_coroutine_functions(lua_.get());
    replace_string_functions(lua_.get());
    replace_table_functions(lua_.get());
  }

  Budget& budget() { return *budget_; }

  // Runs a text with arguments; returns all results, or the error, as text.
  std::string run(std::string_view text, const std::vector<Value>& arguments = {}) {
    lua_State* const lua = lua_.get();
    lua_settop(lua, 0);
    if (luaL_loadbuffer(lua, text.data(), text.size(), "@text") != 0) return lua_tostring(lua, -1);
    for (const Value& value : arguments) {
      if (const auto* words = std::get_if<std::string>(&value)) {
        lua_pushlstring(lua, words->data(), words->size());
      } else if (const auto* number = std::get_if<double>(&value)) {
        lua_pushnumber(lua, *number);
      } else {
        lua_pushnil(lua);
      }
    }
    const int status = limited_pcall(static_cast<int>(arguments.size()));
    std::string out = status == 0 ? "" : "error ";
    for (int i = 1; i <= lua_gettop(lua); ++i) {
      out.append(luaL_typename(lua, i)).append(1, ' ');
      if (lua_isboolean(lua, i)) out += lua_toboolean(lua, i) != 0 ? "true" : "false";
      std::size_t size = 0;
      if (const char* bytes = lua_tolstring(lua, i, &size)) out.append(bytes, size);
      out += '|';
    }
    return out;
  }

 private:
  int limited_pcall(int arguments) {
    std::optional<Budget::Limited> limited;
    if (budget_ != nullptr) limited.emplace(*budget_);
    return lua_pcall(lua_.get(), arguments, LUA_MULTRET, 0);
  }

  struct Close {
    void operator()(lua_State* lua) const { lua_close(lua); }
  };
  std::unique_ptr<Budget> budget_;
  std::unique_ptr<lua_State, Close> lua_;
};

constexpr std::size_t much_memory = 64u << 20;

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t end) { return random() % end; }

std::string random_subject(Random& random) {
  static constexpr std::string_view letters("aab(b)1 .%]\0-A", 14);
  std::string text;
  for (std::size_t size = below(random, 15); text.size() < size;)
    text += letters[below(random, letters.size())];
  return text;
}

std::string random_pattern(Random& random) {
  static const std::vector<std::string> items = {
      "a",     "b",    ".",    "%a",   "%A",   "%d",    "%w",
      "%s",    "%p",   "%z",   "%.",   "%%",   "[ab]",  "[^a]",
      "[a-c]", "[%a]", "[]]",  "[^]]", "[a-]", "[%]]",  "[^%s]",
      "(",     ")",    "()",   "(a)",  "(.-)", "(a*)",  "%1",
      "%2",    "%0",   "%b()", "%bab", "%b",   "%f[a]", "%f[%W]",
      "%fa",   "[",    "%",    "$",    "^",    "-",     std::string(1, '\0'),
      "1",     "%u",   "%x",   "%c",   "%l",   "[a",    "[%",
      "[^"};
  static const std::vector<std::string> repeats = {"", "", "", "*", "+", "-", "?"};
  std::string text = below(random, 5) == 0 ? "^" : "";
  for (std::size_t count = 1 + below(random, 5); count > 0; --count)
    text += items[below(random, items.size())] + repeats[below(random, repeats.size())];
  if (below(random, 6) == 0) text += "$";
  return text;
}

std::string random_replacement(Random& random) {
  static const std::vector<std::string> pieces = {"x", "%0", "%1", "%2", "%9", "%%", "%a", "%", ""};
  std::string text;
  for (std::size_t count = below(random, 4); count > 0; --count) text += pieces[below(random, pieces.size())];
  return text;
}

Value random_number(Random& random) {
  if (below(random, 3) == 0) return std::monostate();
  return static_cast<double>(static_cast<int>(below(random, 24)) - 8);
}

struct Kind {
  const char* name;
  const char* text;
};

// Each takes subject, pattern, replacement, number.
constexpr Kind pattern_kinds[] = {
    {"find", "local s, p, _, n = ... return string.find(s, p, n)"},
    {"find_plain", "local s, p, _, n = ... return string.find(s, p, n, true)"},
    {"match", "local s, p, _, n = ... return string.match(s, p, n)"},
    {"gmatch",
     "local s, p = ... local out = {} for a, b, c in string.gmatch(s, p) do out[#out + 1] = tostring(a) .. "
     "',' "
     ".. tostring(b) .. ',' .. tostring(c) end return table.concat(out, ';')"},
    {"gsub_text", "local s, p, r, n = ... return string.gsub(s, p, r, n)"},
    {"gsub_table", "local s, p, _, n = ... return s:gsub(p, {a = 'x', b = false, ab = 12, [''] = 'e'}, n)"},
    {"gsub_function",
     "local s, p, _, n = ... return s:gsub(p, function(a, b) if a == 'a' then return nil elseif a == 'b' "
     "then "
     "return false elseif b then return a .. tostring(b) end return '<' .. tostring(a) .. '>' end, n)"},
    {"gsub_bad_function",
     "local s, p, _, n = ... return s:gsub(p, function(a) if a ~= 'a' then return {} end end, n)"},
    {"gsub_throwing_function",
     "local s, p = ... return s:gsub(p, function(a) error('no ' .. tostring(a)) end)"},
};

TEST(Patterns, match_as_those_of_lua) {
  Interpreter original, ours(much_memory);
  constexpr unsigned seed = 20261128;
  Random random(seed);
  for (int round = 0; round < 60'000; ++round) {
    const Kind& kind = pattern_kinds[static_cast<std::size_t>(round) % std::size(pattern_kinds)];
    const std::vector<Value> arguments = {random_subject(random), random_pattern(random),
                                          random_replacement(random), random_number(random)};
    ASSERT_EQ(ours.run(kind.text, arguments), original.run(kind.text, arguments))
        << "seed " << seed << " round " << round << " " << kind.name << " of '"
        << std::get<std::string>(arguments[0]) << "' and '" << std::get<std::string>(arguments[1]) << "'";
  }
}

TEST(Patterns, too_deep_are_refused_at_any_place_that_nests) {
  Interpreter ours(much_memory);
  for (const char* item : {"a?", "a*", "a-", "(a", "()", "(a)"}) {
    const std::string got =
        ours.run("local item = ... return pcall(string.find, ('a'):rep(1000), item:rep(250))", {item});
    EXPECT_TRUE(got.find("pattern too complex") != std::string::npos ||
                got.find("too many captures") != std::string::npos)
        << item << ": " << got;
  }
  EXPECT_EQ(ours.run("return string.find(('a'):rep(200000), ('a?'):rep(200000))"),
            "error string text:1: pattern too complex|");
  EXPECT_EQ(ours.run("return string.find(('a'):rep(300), ('a'):rep(300))"), "number 1|number 300|");
}

// Calls with what the libraries treat in a special way.
constexpr const char* library_calls[] = {
    "return string.rep('ab', 3), string.rep('', 5), string.rep('x', -1), string.rep('x', 0)",
    "return string.rep('ab', 10000)",
    "return string.rep()",
    "return string.rep('x', 'y')",
    "return string.reverse('abc'), string.reverse(''), string.reverse(('ab'):rep(20000))",
    "return string.lower('AbC\\0Z'), string.upper('aBc\\0z'), (('aB'):rep(20000)):upper()",
    "return string.lower({})",
    "return string.format('%d %5d|%-5d|%05d|%+d', 1, 2, 3, 4, 5)",
    "return string.format('%i %u %o %x %X %c', -3, 3, 8, 255, 255, 65)",
    "return string.format('%e %E %f %g %G %.3f %10.2f', 1.5, 1.5, 1.5, 1e20, 1e-20, 2/3, 1/3)",
    "return string.format('%s|%10s|%-10s|%.2s|%s', 'a', 'b', 'c', 'def', ('x'):rep(200))",
    "return string.format('%.3s|%10s', ('x'):rep(200), ('x'):rep(200))",
    "return string.format('%s', 'a\\0b'), string.format('%s', ('a\\0b'):rep(100))",
    "return string.format('%q', 'a\"b\\\\c\\nd\\re\\0f')",
    "return string.format('%5q', 'x')",
    "return string.format('%%'), string.format(''), string.format(12)",
    "return string.format('%')",
    "return string.format('%d')",
    "return string.format('%d', 'x')",
    "return string.format('%y', 1)",
    "return string.format('%123d', 1)",
    "return string.format('%.123d', 1)",
    "return string.format('%-+ #0-d', 1)",
    "return string.format('%s', {})",
    "return string.format('%c%c', 0, 66)",
    "return string.format('%f', 1e308), string.format('%.99f', 1/3), string.format('%99.99f', -1e308)",
    "return string.format('%d', 3.7), string.format('%x', -1), string.format('%d', -2^63)",
    "return string.find('abc', 'b', -1), string.find('abc', 'b', -2), string.find('', ''), string.find('a', "
    "'', 9)",
    "return string.find('a.c', '.', 2, true), string.find('a\\0b', '\\0'), string.find('a\\0b', 'b', 1, "
    "true)",
    "return string.find(('a'):rep(9999) .. 'b', ('a'):rep(500) .. 'b')",
    "return string.find(1234, 3), string.match(1234, '%d%d'), string.gsub(1234, 3, 5)",
    "return string.gsub('abc', 'b')",
    "return string.gsub('abc', 'b', true)",
    "return string.gsub('abc', 'b', 'x', 'y')",
    "return string.gsub('hello world', '%w+', '%0 %0', 1)",
    "return string.gsub('abc', '', '-')",
    "return string.gmatch('abc')",
    "return string.gfind == string.gmatch",
    "local t = {1, 2, 3} table.insert(t, 4) table.insert(t, 1, 0) table.insert(t, 9, 9) return #t, t[1], "
    "t[5], t[9]",
    "local t = {1, 2, 3} table.insert(t, -3, 'x') return #t, t[-3], t[-2], t[1], t[4]",
    "table.insert({}, 1, 2, 3)",
    "table.insert({})",
    "table.insert(1, 2)",
    "table.insert({}, 'x', 2)",
    "local t = {1, 2, 3} return table.remove(t), table.remove(t, 1), table.remove(t, 7), table.remove({}), "
    "#t",
    "local t = {1, 2, 3} return table.remove(t, 0), table.remove(t, -1), #t",
    "return table.concat({1, 2, 'x'}, ', '), table.concat({}), table.concat({1, 2, 3}, '-', 2), "
    "table.concat({1, 2, 3}, '-', 2, 2), table.concat({1, 2, 3}, '-', 3, 2)",
    "return table.concat({1, {}, 3})",
    "return table.concat({1, 2}, '', 1, 5)",
    "return table.concat({1, 2}, {})",
    "return table.maxn({1, 2, [10.5] = 3, x = 4}), table.maxn({}), table.maxn({[-1] = 1})",
    "return table.foreachi({5, 6, 7}, function(i, v) if v == 6 then return i end end)",
    "return table.foreach({x = 1}, function(k, v) return k .. v end), table.foreach({}, print)",
    "return table.foreach({}, 1)",
    "return table.foreachi({}, nil)",
    "return table.getn({1, 2, 3})",
    "table.sort({3, 'x', 1})",
    "table.sort({{}, {}})",
    "table.sort({1, 2, 3}, 1)",
    "local t = {3, 1, 2} table.sort(t, nil) return table.concat(t, ' ')",
    "table.sort({3, 1, 2}, function() error('no') end)",
    "local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b) error('x' .. c) end) "
    "local r = {coroutine.resume(co, 1, 2)} local s = {coroutine.resume(co, 'y')} local u = "
    "{coroutine.resume(co)} "
    "return tostring(r[1]), r[2], tostring(s[1]), s[2], tostring(u[1]), u[2], coroutine.status(co)",
    "local f = coroutine.wrap(function(...) for i = 1, select('#', ...) do coroutine.yield((select(i, ...))) "
    "end "
    "end) return f(5, 6), f(), f(), pcall(f)",
    "return pcall(coroutine.wrap(function() error({}) end))",
    "local f f = coroutine.wrap(function() f() end) f()",
    "return coroutine.resume(1)",
    "return coroutine.create(print)",
    "return coroutine.wrap(1)",
    "local co co = coroutine.create(function() return coroutine.resume(co) end) return coroutine.resume(co)",
    "local out local a a = coroutine.create(function() local b = coroutine.create(function() return "
    "coroutine.resume(a) end) return coroutine.resume(b) end) return coroutine.resume(a)",
    "local function nest(n) if n == 0 then return 'deep' end return coroutine.wrap(nest)(n - 1) end return "
    "nest(150)",
    "local function nest(n) return coroutine.wrap(nest)(n) end return select(2, pcall(nest, 0)):sub(-16)",
};

TEST(Libraries, end_each_call_as_those_of_lua) {
  for (const char* call : library_calls) {
    Interpreter original, ours(much_memory);
    EXPECT_EQ(ours.run(call), original.run(call)) << call;
  }
}

TEST(Sort, leaves_the_order_that_lua_leaves) {
  Interpreter original, ours(much_memory);
  constexpr unsigned seed = 20261129;
  Random random(seed);
  // By a remainder, so that many are equal; by an order that is none, which may take for ever; and by no
  // function.
  constexpr const char* sorts[] = {
      "table.sort(t, function(a, b) return a % 10 < b % 10 end)",
      "local n = 0 table.sort(t, function(a, b) n = n + 1 if n > 5000 then error('long') end "
      "return (a * 7 + b * 3 + n) % 3 == 0 end)",
      "table.sort(t, function() return true end)",
      "table.sort(t)",
      "for i = 1, #t do t[i] = tostring(t[i]) end table.sort(t)",
  };
  for (int round = 0; round < 1000; ++round) {
    std::vector<Value> numbers;
    for (std::size_t count = below(random, 40); numbers.size() < count;)
      numbers.emplace_back(static_cast<double>(below(random, 60)));
    const std::string text = std::string("local t = {...} local fine, text = pcall(function() ") +
                             sorts[static_cast<std::size_t>(round) % std::size(sorts)] +
                             " end) return tostring(fine), text, table.concat(t, ' ', 1, #t)";
    ASSERT_EQ(ours.run(text, numbers), original.run(text, numbers)) << "seed " << seed << " round " << round;
  }
}

// What a text of so many bytes costs at most is what is done between two looks at the clock, whatever it
// calls: counted in looks, not by time. Each of these would work for minutes or for ever.
TEST(Budget, is_asked_again_and_again_by_whatever_works_long) {
  constexpr const char* endless[] = {
      "return string.find(('('):rep(200000), '%b()')",
      "return string.find(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b')",
      "return string.find(('a'):rep(1000000), '.-.-.-b')",
      "return string.gsub(('a'):rep(1000000), '.-.-.-b', '')",
      "return string.match(('a'):rep(1000000), '(.-)(.-)%1%2b')",
      "for x in string.gmatch(('a'):rep(1000000), '.-.-.-b') do end",
      "return string.find(('a'):rep(1000000), '[' .. ('b'):rep(1000000) .. ']')",
      "return string.find(('a'):rep(4000000), ('a'):rep(2000000) .. 'b', 1, true)",
      "return string.rep('ab', 2^31 - 1)",
      "table.insert({}, -2147483647, 1)",
      "return table.concat({}, ('x'):rep(1000), -2^31, 2^31 - 1)",
      "local t = {} for i = 1, 200000 do t[i] = 1 end for i = 1, 200000 do table.remove(t, 1) end",
      "local t = {} for i = 1, 200000 do t[i] = i end table.sort(t, function() return false end) "
      "table.sort(t)",
      "local t = {} for i = 1, 2000 do t[i] = ('a'):rep(100000) .. i end while true do table.sort(t) end",
      "while true do coroutine.wrap(function() for i = 1, 90000 do end end)() end",
      "local t = {} for i = 1, 1000 do t[i] = 1 end while true do table.maxn(t) table.foreachi(t, type) end",
      "local t = {} for i = 1, 100 do t[i] = 'x' end while true do string.format(('%q'):rep(100), unpack(t)) "
      "end",
  };
  for (const char* text : endless) {
    Interpreter ours(much_memory);
    int looks = 0;
    ours.budget().look = [&looks](lua_State* lua) {
      if (++looks == 20) luaL_error(lua, "enough");
    };
    const std::string got = ours.run(text);
    const bool refused =
        got.find("not enough memory") != std::string::npos || got.find("invalid value") != std::string::npos;
    EXPECT_TRUE(refused || got.find("enough") != std::string::npos) << text << ": " << got;
  }
}

}  // namespace
}  // namespace weir::kv::testing
