#include "kv/scripts/message_pack.hpp"

#include <msgpack.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace weir::kv {

namespace {

// Deeper tables become nil, as in Redis, because a table may contain itself.
constexpr int deepest = 16;

struct Packed {
  Packed() { msgpack_sbuffer_init(&bytes); }
  ~Packed() { msgpack_sbuffer_destroy(&bytes); }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  msgpack_sbuffer bytes;
  msgpack_packer packer{.data = &bytes, .callback = msgpack_sbuffer_write};
};

void pack_value(lua_State* lua, msgpack_packer& out, int depth);

void pack_number(lua_State* lua, msgpack_packer& out) {
  const lua_Number value = lua_tonumber(lua, -1);
  constexpr lua_Number limit = 9223372036854775808.0;
  if (std::floor(value) == value && value >= -limit && value < limit) {
    msgpack_pack_int64(&out, static_cast<std::int64_t>(value));
  } else if (static_cast<lua_Number>(static_cast<float>(value)) == value) {
    msgpack_pack_float(&out, static_cast<float>(value));
  } else {
    msgpack_pack_double(&out, value);
  }
}

// The number of elements if the keys are 1, 2, ... without a gap; otherwise -1.
std::int64_t length_of_array(lua_State* lua) {
  std::int64_t count = 0;
  lua_Number largest = 0;
  for (lua_pushnil(lua); lua_next(lua, -2) != 0;) {
    lua_pop(lua, 1);
    const lua_Number key = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : 0;
    if (key < 1 || std::floor(key) != key) {
      lua_pop(lua, 1);
      return -1;
    }
    ++count;
    largest = std::max(largest, key);
  }
  return static_cast<lua_Number>(count) == largest ? count : -1;
}

void pack_table(lua_State* lua, msgpack_packer& out, int depth) {
  const std::int64_t length = length_of_array(lua);
  if (length >= 0) {
    msgpack_pack_array(&out, static_cast<std::size_t>(length));
    for (std::int64_t i = 1; i <= length; ++i) {
      lua_rawgeti(lua, -1, static_cast<int>(i));
      pack_value(lua, out, depth + 1);
    }
    return;
  }
  std::size_t pairs = 0;
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) ++pairs;
  msgpack_pack_map(&out, pairs);
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    lua_pushvalue(lua, -2);
    pack_value(lua, out, depth + 1);
    pack_value(lua, out, depth + 1);
  }
}

// Packs the value on top of the stack and pops it.
void pack_value(lua_State* lua, msgpack_packer& out, int depth) {
  luaL_checkstack(lua, 6, "in function pack");
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* text = lua_tolstring(lua, -1, &size);
      msgpack_pack_str(&out, size);
      msgpack_pack_str_body(&out, text, size);
      break;
    }
    case LUA_TBOOLEAN:
      lua_toboolean(lua, -1) != 0 ? msgpack_pack_true(&out) : msgpack_pack_false(&out);
      break;
    case LUA_TNUMBER:
      pack_number(lua, out);
      break;
    case LUA_TTABLE:
      depth == deepest ? static_cast<void>(msgpack_pack_nil(&out)) : pack_table(lua, out, depth);
      break;
    default:
      msgpack_pack_nil(&out);
  }
  lua_pop(lua, 1);
}

int pack_message(lua_State* lua) {
  const int count = lua_gettop(lua);
  luaL_argcheck(lua, count > 0, 0, "MessagePack pack needs input.");
  Packed packed;
  for (int i = 1; i <= count; ++i) {
    lua_pushvalue(lua, i);
    pack_value(lua, packed.packer, 0);
  }
  lua_pushlstring(lua, packed.bytes.data, packed.bytes.size);
  return 1;
}

void push_object(lua_State* lua, const msgpack_object& object) {
  luaL_checkstack(lua, 4, "too many return values at once; use unpack_one or unpack_limit instead.");
  switch (object.type) {
    case MSGPACK_OBJECT_BOOLEAN:
      return lua_pushboolean(lua, object.via.boolean);
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
      return lua_pushnumber(lua, static_cast<lua_Number>(object.via.u64));
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
      return lua_pushnumber(lua, static_cast<lua_Number>(object.via.i64));
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
      return lua_pushnumber(lua, object.via.f64);
    case MSGPACK_OBJECT_STR:
      return lua_pushlstring(lua, object.via.str.ptr, object.via.str.size);
    case MSGPACK_OBJECT_BIN:
      return lua_pushlstring(lua, object.via.bin.ptr, object.via.bin.size);
    case MSGPACK_OBJECT_ARRAY:
      lua_newtable(lua);
      for (std::uint32_t i = 0; i < object.via.array.size; ++i) {
        push_object(lua, object.via.array.ptr[i]);
        lua_rawseti(lua, -2, static_cast<int>(i) + 1);
      }
      return;
    case MSGPACK_OBJECT_MAP:
      lua_newtable(lua);
      for (std::uint32_t i = 0; i < object.via.map.size; ++i) {
        push_object(lua, object.via.map.ptr[i].key);
        push_object(lua, object.via.map.ptr[i].val);
        // nil and NaN cannot be keys in Lua.
        const bool key = !lua_isnil(lua, -2) && lua_rawequal(lua, -2, -2) != 0;
        key ? lua_rawset(lua, -3) : lua_pop(lua, 2);
      }
      return;
    case MSGPACK_OBJECT_EXT:
      luaL_error(lua, "Bad data format in input.");
      return;
    default:
      return lua_pushnil(lua);
  }
}

// The big-endian number of `bytes` bytes after the byte at `at`; 0: it is cut off.
std::uint64_t number_behind(std::string_view data, std::size_t at, std::size_t bytes) {
  if (data.size() - at <= bytes) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 1; i <= bytes; ++i) value = value << 8 | static_cast<unsigned char>(data[at + i]);
  return value;
}

// Whether the value at `at` is complete. msgpack-c allocates memory for as many elements as a header claims,
// so a header that claims more elements than there are bytes must not reach it.
bool is_whole(std::string_view data, std::size_t at) {
  for (std::uint64_t values = 1; values != 0; --values) {
    if (at >= data.size() || values > data.size() - at) return false;
    const auto type = static_cast<unsigned char>(data[at]);
    std::uint64_t skipped = 0, more = 0;
    if (type >= 0x80 && type <= 0x8f) {
      more = 2 * (type & 15u);
    } else if (type >= 0x90 && type <= 0x9f) {
      more = type & 15u;
    } else if (type >= 0xa0 && type <= 0xbf) {
      skipped = type & 31u;
    } else if (type >= 0xc4 && type <= 0xc9) {  // bin, ext
      const std::size_t width = std::size_t{1} << (type - 0xc4) % 3;
      skipped = width + number_behind(data, at, width) + (type >= 0xc7 ? 1 : 0);
    } else if (type == 0xca || type == 0xcb) {
      skipped = type == 0xca ? 4 : 8;
    } else if (type >= 0xcc && type <= 0xd3) {  // integers
      skipped = std::size_t{1} << (type - 0xcc) % 4;
    } else if (type >= 0xd4 && type <= 0xd8) {  // fixext
      skipped = 1 + (std::size_t{1} << (type - 0xd4));
    } else if (type >= 0xd9 && type <= 0xdb) {  // str
      const std::size_t width = std::size_t{1} << (type - 0xd9);
      skipped = width + number_behind(data, at, width);
    } else if (type >= 0xdc && type <= 0xdf) {  // array, map
      const std::size_t width = type % 2 == 0 ? 2 : 4;
      skipped = width;
      more = number_behind(data, at, width) * (type >= 0xde ? 2 : 1);
    }
    if (skipped >= data.size() - at) return false;
    at += 1 + static_cast<std::size_t>(skipped);
    values += more;
  }
  return true;
}

struct Unpacked {
  Unpacked() { msgpack_unpacked_init(&value); }
  ~Unpacked() { msgpack_unpacked_destroy(&value); }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  msgpack_unpacked value;
};

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
  auto at = static_cast<std::size_t>(offset);
  lua_settop(lua, 1);
  if (with_offset) lua_pushnil(lua);
  for (std::int64_t count = 0; at < size && (limit == 0 || count < limit); ++count) {
    if (!is_whole({bytes, size}, at)) return luaL_error(lua, "Missing bytes in input.");
    Unpacked one;
    const msgpack_unpack_return status = msgpack_unpack_next(&one.value, bytes, size, &at);
    if (status == MSGPACK_UNPACK_CONTINUE) return luaL_error(lua, "Missing bytes in input.");
    if (status != MSGPACK_UNPACK_SUCCESS && status != MSGPACK_UNPACK_EXTRA_BYTES)
      return luaL_error(lua, "Bad data format in input.");
    push_object(lua, one.value.data);
  }
  if (with_offset) {
    lua_pushnumber(lua, at == size ? -1 : static_cast<lua_Number>(at));
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
