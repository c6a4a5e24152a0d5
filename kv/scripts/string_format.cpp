#include "kv/scripts/string_format.hpp"

#include <array>
#include <cctype>
#include <climits>
#include <cstdio>
#include <string>
#include <string_view>

#include "kv/scripts/lua_buffer.hpp"
#include "kv/scripts/lua_values.hpp"

namespace weir::kv {

namespace {

constexpr std::string_view flags = "-+ #0";
constexpr std::size_t longest_item = 512;  // of what one directive writes: a double with 99 decimals fits

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// One directive: "%", flags, width and precision of at most two digits, and a letter.
struct Directive {
  std::string text;
  char letter = '\0';
  bool has_precision = false;
};

// Reads the directive whose flags begin at `at`, which moves behind its letter. The format ends with a zero
// byte.
Directive read_directive(lua_State* lua, const char*& at) {
  const char* p = at;
  while (*p != '\0' && flags.find(*p) != std::string_view::npos) ++p;
  if (static_cast<std::size_t>(p - at) > flags.size()) luaL_error(lua, "invalid format (repeated flags)");
  const auto skip_two_digits = [&p] {
    for (int i = 0; i < 2 && is_digit(*p); ++i) ++p;
  };
  skip_two_digits();
  Directive out;
  if (*p == '.') {
    out.has_precision = true;
    ++p;
    skip_two_digits();
  }
  if (is_digit(*p)) luaL_error(lua, "invalid format (width or precision too long)");
  out.text.assign(1, '%').append(at, p);
  out.letter = *p;
  at = p + 1;
  return out;
}

// Writes the value as C does. The directive is one of ours, checked, whatever the compiler thinks of it.
template <class Value>
void add_item(lua_State* lua, luaL_Buffer& out, const std::string& directive, Value value) {
  std::array<char, longest_item> item;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  std::snprintf(item.data(), item.size(), directive.c_str(), value);
#pragma GCC diagnostic pop
  add_paid(lua, out, std::string_view(item.data()));  // up to a zero byte, as in Lua
}

// "%q": a text that Lua reads back.
void add_quoted(lua_State* lua, luaL_Buffer& out, int argument) {
  luaL_checkstring(lua, argument);
  luaL_addchar(&out, '"');
  for (const char c : text_at(lua, argument)) {
    Budget::of(lua).spend(lua, 1);
    switch (c) {
      case '"':
      case '\\':
      case '\n':
        luaL_addchar(&out, '\\');
        luaL_addchar(&out, c);
        break;
      case '\r':
        luaL_addlstring(&out, "\\r", 2);
        break;
      case '\0':
        luaL_addlstring(&out, "\\000", 4);
        break;
      default:
        luaL_addchar(&out, c);
    }
  }
  luaL_addchar(&out, '"');
}

void add_text(lua_State* lua, luaL_Buffer& out, const Directive& directive, int argument) {
  constexpr std::size_t longest_padded = 99;
  luaL_checkstring(lua, argument);
  const std::string_view text = text_at(lua, argument);
  // A long text needs no padding, so it may have zero bytes and any length.
  if (!directive.has_precision && text.size() > longest_padded) return add_paid(lua, out, text);
  add_item(lua, out, directive.text + 's', text.data());
}

// What conversions give on x86-64, where Lua leaves numbers out of range to the compiler.
int as_int(lua_Number number) {
  return number > -0x1p31 - 1 && number < 0x1p31 ? static_cast<int>(number) : INT_MIN;
}
long long as_integer(lua_Number number) {
  return number >= -0x1p63 && number < 0x1p63 ? static_cast<long long>(number) : LLONG_MIN;
}
unsigned long long as_unsigned(lua_Number number) {
  if (number >= 0x1p64) return 0;
  return number >= 0x1p63 ? static_cast<unsigned long long>(number)
                          : static_cast<unsigned long long>(as_integer(number));
}

void add_argument(lua_State* lua, luaL_Buffer& out, const Directive& directive, int argument) {
  switch (const char letter = directive.letter) {
    case 'c':
      return add_item(lua, out, directive.text + letter, as_int(luaL_checknumber(lua, argument)));
    case 'd':
    case 'i':
      return add_item(lua, out, directive.text + "ll" + letter, as_integer(luaL_checknumber(lua, argument)));
    case 'o':
    case 'u':
    case 'x':
    case 'X':
      return add_item(lua, out, directive.text + "ll" + letter, as_unsigned(luaL_checknumber(lua, argument)));
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G':
      return add_item(lua, out, directive.text + letter, luaL_checknumber(lua, argument));
    case 'q':
      return add_quoted(lua, out, argument);
    case 's':
      return add_text(lua, out, directive, argument);
    default:
      luaL_error(lua, "invalid option '%%%c' to 'format'", letter);
  }
}

}  // namespace

int format_text(lua_State* lua) {
  const int top = lua_gettop(lua);
  luaL_checkstring(lua, 1);
  const std::string_view format = text_at(lua, 1);
  const char* at = format.data();
  const char* const end = at + format.size();
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  int argument = 1;
  while (at < end) {
    Budget::of(lua).spend(lua, 1);
    if (*at != '%' || *++at == '%') {
      luaL_addchar(&out, *at++);
      continue;
    }
    if (++argument > top) luaL_argerror(lua, argument, "no value");
    add_argument(lua, out, read_directive(lua, at), argument);
  }
  luaL_pushresult(&out);
  return 1;
}

}  // namespace weir::kv
