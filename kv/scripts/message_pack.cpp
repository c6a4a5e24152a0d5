#include "kv/scripts/message_pack.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "kv/scripts/paid_bytes.hpp"

namespace weir::kv {

namespace {

// Deeper tables become nil, as in Redis, because a table may contain itself.
constexpr int deepest_packed = 16;
constexpr int deepest_unpacked = 32;

// Writes values in MessagePack's shortest form.
class Packer {
 public:
  explicit Packer(lua_State* lua) : lua_(lua), out_(lua) {}

  // Packs the value on top of the stack and pops it.
  void value(int depth);
  void push() const { out_.push(); }

 private:
  void put(unsigned type, std::uint64_t number, std::size_t bytes);
  void number();
  void integer(std::int64_t value);
  void text();
  void table(int depth);
  std::int64_t length_of_array();

  lua_State* const lua_;
  PaidBytes out_;
};

// A type byte and a big-endian number of so many bytes.
void Packer::put(unsigned type, std::uint64_t number, std::size_t bytes) {
  char piece[1 + sizeof number] = {static_cast<char>(type)};
  for (std::size_t i = 0; i < bytes; ++i) piece[bytes - i] = static_cast<char>(number >> (8 * i) & 0xff);
  out_.add(std::string_view(piece, 1 + bytes));
}

void Packer::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= -32 && value < 128) return put(static_cast<unsigned>(bits & 0xff), 0, 0);
  if (value >= 0) {
    if (bits <= 0xff) return put(0xcc, bits, 1);
    if (bits <= 0xffff) return put(0xcd, bits, 2);
    return bits <= 0xffffffff ? put(0xce, bits, 4) : put(0xcf, bits, 8);
  }
  if (value >= INT8_MIN) return put(0xd0, bits, 1);
  if (value >= INT16_MIN) return put(0xd1, bits, 2);
  return value >= INT32_MIN ? put(0xd2, bits, 4) : put(0xd3, bits, 8);
}

void Packer::number() {
  const lua_Number value = lua_tonumber(lua_, -1);
  constexpr lua_Number limit = 9223372036854775808.0;
  if (std::floor(value) == value && value >= -limit && value < limit) {
    integer(static_cast<std::int64_t>(value));
  } else if (static_cast<lua_Number>(static_cast<float>(value)) == value) {
    put(0xca, std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
  } else {
    put(0xcb, std::bit_cast<std::uint64_t>(value), 8);
  }
}

void Packer::text() {
  std::size_t size = 0;
  const char* bytes = lua_tolstring(lua_, -1, &size);
  if (size < 32) {
    put(0xa0 | static_cast<unsigned>(size), 0, 0);
  } else if (size <= 0xff) {
    put(0xd9, size, 1);
  } else {
    size <= 0xffff ? put(0xda, size, 2) : put(0xdb, size, 4);
  }
  out_.add({bytes, size});
}

// The number of elements if the keys are 1, 2, ... without a gap; otherwise -1.
std::int64_t Packer::length_of_array() {
  std::int64_t count = 0;
  lua_Number largest = 0;
  for (lua_pushnil(lua_); lua_next(lua_, -2) != 0;) {
    Budget::of(lua_).spend(lua_, 1);
    lua_pop(lua_, 1);
    const lua_Number key = lua_type(lua_, -1) == LUA_TNUMBER ? lua_tonumber(lua_, -1) : 0;
    if (key < 1 || std::floor(key) != key) {
      lua_pop(lua_, 1);
      return -1;
    }
    ++count;
    largest = std::max(largest, key);
  }
  return static_cast<lua_Number>(count) == largest ? count : -1;
}

void Packer::table(int depth) {
  const auto header = [this](unsigned few, unsigned many, std::uint64_t count) {
    if (count < 16) return put(few | static_cast<unsigned>(count), 0, 0);
    count <= 0xffff ? put(many, count, 2) : put(many + 1, count, 4);
  };
  const std::int64_t length = length_of_array();
  if (length >= 0) {
    header(0x90, 0xdc, static_cast<std::uint64_t>(length));
    for (std::int64_t i = 1; i <= length; ++i) {
      lua_rawgeti(lua_, -1, static_cast<int>(i));
      value(depth + 1);
    }
    return;
  }
  std::uint64_t pairs = 0;
  for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
    Budget::of(lua_).spend(lua_, 1);
    ++pairs;
  }
  header(0x80, 0xde, pairs);
  lua_pushnil(lua_);
  while (lua_next(lua_, -2) != 0) {
    lua_pushvalue(lua_, -2);
    value(depth + 1);
    value(depth + 1);
  }
}

void Packer::value(int depth) {
  luaL_checkstack(lua_, 6, "in function pack");
  switch (lua_type(lua_, -1)) {
    case LUA_TSTRING:
      text();
      break;
    case LUA_TBOOLEAN:
      put(lua_toboolean(lua_, -1) != 0 ? 0xc3 : 0xc2, 0, 0);
      break;
    case LUA_TNUMBER:
      number();
      break;
    case LUA_TTABLE:
      depth == deepest_packed ? put(0xc0, 0, 0) : table(depth);
      break;
    default:
      put(0xc0, 0, 0);
  }
  lua_pop(lua_, 1);
}

int pack_message(lua_State* lua) {
  const int count = lua_gettop(lua);
  luaL_argcheck(lua, count > 0, 0, "MessagePack pack needs input.");
  Packer packer(lua);
  for (int i = 1; i <= count; ++i) {
    lua_pushvalue(lua, i);
    packer.value(0);
  }
  packer.push();
  return 1;
}

// Reads values from a text that stays on Lua's stack.
class Unpacker {
 public:
  Unpacker(lua_State* lua, std::string_view data, std::size_t at) : lua_(lua), data_(data), at_(at) {}

  // Reads a value and pushes it.
  void value(int depth = 0);
  std::size_t at() const { return at_; }

 private:
  std::string_view take(std::uint64_t bytes);
  std::uint64_t number(std::size_t bytes);
  void text(std::uint64_t bytes) {
    const std::string_view taken = take(bytes);
    lua_pushlstring(lua_, taken.data(), taken.size());
  }
  void array(std::uint64_t count, int depth);
  void map(std::uint64_t count, int depth);
  void integer_or_real(unsigned type);
  [[noreturn]] void fail(const char* text) {
    luaL_error(lua_, text);
    __builtin_unreachable();
  }

  lua_State* const lua_;
  const std::string_view data_;
  std::size_t at_;
};

std::string_view Unpacker::take(std::uint64_t bytes) {
  if (bytes > data_.size() - at_) fail("Missing bytes in input.");
  Budget::of(lua_).spend_bytes(lua_, bytes);
  const std::string_view taken = data_.substr(at_, bytes);
  at_ += bytes;
  return taken;
}

std::uint64_t Unpacker::number(std::size_t bytes) {
  std::uint64_t value = 0;
  for (const char byte : take(bytes)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// Tables grow with what is read: a header may claim more elements than there are.
void Unpacker::array(std::uint64_t count, int depth) {
  if (depth == deepest_unpacked) fail("Bad data format in input.");
  lua_newtable(lua_);
  for (std::uint64_t i = 1; i <= count; ++i) {
    value(depth + 1);
    lua_rawseti(lua_, -2, static_cast<int>(i));
  }
}

void Unpacker::map(std::uint64_t count, int depth) {
  if (depth == deepest_unpacked) fail("Bad data format in input.");
  lua_newtable(lua_);
  for (std::uint64_t i = 0; i < count; ++i) {
    value(depth + 1);
    value(depth + 1);
    // nil and NaN cannot be keys in Lua.
    const bool key = !lua_isnil(lua_, -2) && lua_rawequal(lua_, -2, -2) != 0;
    key ? lua_rawset(lua_, -3) : lua_pop(lua_, 2);
  }
}

// 0xca to 0xd3
void Unpacker::integer_or_real(unsigned type) {
  if (type == 0xca)
    return lua_pushnumber(lua_, std::bit_cast<float>(static_cast<std::uint32_t>(number(sizeof(float)))));
  if (type == 0xcb) return lua_pushnumber(lua_, std::bit_cast<double>(number(sizeof(double))));
  const std::size_t bytes = std::size_t{1} << (type - 0xcc) % 4;
  const std::uint64_t value = number(bytes);
  if (type <= 0xcf) return lua_pushnumber(lua_, static_cast<lua_Number>(value));
  const std::size_t unused = 64 - 8 * bytes;
  lua_pushnumber(lua_, static_cast<lua_Number>(static_cast<std::int64_t>(value << unused) >> unused));
}

void Unpacker::value(int depth) {
  luaL_checkstack(lua_, 4, "too many return values at once; use unpack_one or unpack_limit instead.");
  const auto type = static_cast<unsigned>(number(1));
  if (type < 0x80) return lua_pushnumber(lua_, type);
  if (type < 0x90) return map(type & 15, depth);
  if (type < 0xa0) return array(type & 15, depth);
  if (type < 0xc0) return text(type & 31);
  if (type >= 0xe0) return lua_pushnumber(lua_, static_cast<std::int8_t>(type));
  if (type == 0xc0) return lua_pushnil(lua_);
  if (type == 0xc2 || type == 0xc3) return lua_pushboolean(lua_, type == 0xc3 ? 1 : 0);
  if (type >= 0xc4 && type <= 0xc6) return text(number(std::size_t{1} << (type - 0xc4)));
  if (type >= 0xca && type <= 0xd3) return integer_or_real(type);
  if (type >= 0xd9 && type <= 0xdb) return text(number(std::size_t{1} << (type - 0xd9)));
  if (type == 0xdc || type == 0xdd) return array(number(type == 0xdc ? 2 : 4), depth);
  if (type == 0xde || type == 0xdf) return map(number(type == 0xde ? 2 : 4), depth);
  fail("Bad data format in input.");  // extensions, and 0xc1, which is no type
}

// Pushes at most `limit` values that start at `offset`. With `with_offset` it first pushes the offset after
// the last one, or -1 at the end of the data.
int unpack_some(lua_State* lua, std::int64_t limit, std::int64_t offset, bool with_offset) {
  std::size_t size = 0;
  const char* bytes = luaL_checklstring(lua, 1, &size);
  if (offset < 0 || limit < 0) {
    return luaL_error(lua, "Invalid request to unpack with offset of %d and limit of %d.",
                      static_cast<int>(offset), static_cast<int>(limit));
  }
  if (static_cast<std::size_t>(offset) > size)
    return luaL_error(lua, "Start offset %d greater than input length %d.", static_cast<int>(offset),
                      static_cast<int>(size));
  Unpacker unpacker(lua, {bytes, size}, static_cast<std::size_t>(offset));
  lua_settop(lua, 1);
  if (with_offset) lua_pushnil(lua);
  for (std::int64_t count = 0; unpacker.at() < size && (limit == 0 || count < limit); ++count)
    unpacker.value();
  if (with_offset) {
    lua_pushnumber(lua, unpacker.at() == size ? -1 : static_cast<lua_Number>(unpacker.at()));
    lua_replace(lua, 2);
  }
  return lua_gettop(lua) - 1;
}

int unpack_message(lua_State* lua) { return unpack_some(lua, 0, 0, false); }
int unpack_one(lua_State* lua) {
  return unpack_some(lua, 1, static_cast<std::int64_t>(luaL_optinteger(lua, 2, 0)), true);
}
int unpack_limit(lua_State* lua) {
  const auto limit = static_cast<std::int64_t>(luaL_checkinteger(lua, 2));
  return unpack_some(lua, limit, static_cast<std::int64_t>(luaL_optinteger(lua, 3, 0)), true);
}

}  // namespace

int open_message_pack(lua_State* lua) {
  constexpr luaL_Reg functions[] = {{"pack", pack_message},
                                    {"unpack", unpack_message},
                                    {"unpack_one", unpack_one},
                                    {"unpack_limit", unpack_limit},
                                    {nullptr, nullptr}};
  lua_newtable(lua);
  luaL_register(lua, nullptr, functions);
  return 1;
}

}  // namespace weir::kv
