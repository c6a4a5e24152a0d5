#include "kv/scripts/struct_library.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "kv/scripts/paid_bytes.hpp"

namespace weir::kv {

namespace {

constexpr std::size_t largest_integer = 32;  // bytes, as in the original
constexpr std::size_t default_alignment = 8;

// One piece of a format: a letter, its size in bytes, and its padding.
struct Piece {
  char letter;
  std::size_t size;
  std::size_t padding;
};

class Format {
 public:
  Format(lua_State* lua, std::string_view text) : lua_(lua), rest_(text) {}

  bool little() const { return little_; }

  // The next piece, for data at offset `at`; false: the format has ended.
  bool next(std::size_t at, Piece& piece) {
    while (!rest_.empty()) {
      Budget::of(lua_).spend(lua_, 1);
      const char letter = take();
      switch (letter) {
        case ' ':
          continue;
        case '>':
          little_ = false;
          continue;
        case '<':
          little_ = true;
          continue;
        case '=':
          little_ = std::endian::native == std::endian::little;
          continue;
        case '!': {
          const std::size_t wanted = number(default_alignment);
          if (wanted == 0 || !std::has_single_bit(wanted)) luaL_error(lua_, "alignment is not a power of 2");
          alignment_ = wanted;
          continue;
        }
        default:
          piece = {letter, size_of(letter), 0};
          piece.padding = padding(piece, at);
          return true;
      }
    }
    return false;
  }

 private:
  char take() {
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    return letter;
  }

  std::size_t number(std::size_t otherwise) {
    if (rest_.empty() || !digit(rest_.front())) return otherwise;
    constexpr std::size_t most = 0x7fffffff;
    std::size_t value = 0;
    while (!rest_.empty() && digit(rest_.front())) {
      value = value * 10 + static_cast<std::size_t>(take() - '0');
      if (value > most) luaL_error(lua_, "integral size overflow");
    }
    return value;
  }
  static bool digit(char c) { return c >= '0' && c <= '9'; }

  std::size_t size_of(char letter) {
    switch (letter) {
      case 'b':
      case 'B':
      case 'x':
        return 1;
      case 'h':
      case 'H':
        return 2;
      case 'l':
      case 'L':
      case 'T':
      case 'd':
        return 8;
      case 'f':
        return 4;
      case 'c':
        return number(1);
      case 'i':
      case 'I': {
        const std::size_t size = number(4);
        if (size == 0 || size > largest_integer) {
          luaL_error(lua_, "integral size %d is larger than limit of %d", static_cast<int>(size),
                     static_cast<int>(largest_integer));
        }
        return size;
      }
      case 's':
        return 0;
      default:
        luaL_argerror(lua_, 1, lua_pushfstring(lua_, "invalid format option '%c'", letter));
        return 0;
    }
  }

  std::size_t padding(const Piece& piece, std::size_t at) const {
    if (piece.size == 0 || piece.letter == 'c' || piece.letter == 'x') return 0;
    const std::size_t align = std::min(piece.size, alignment_);
    if (align <= 1) return 0;
    if (!std::has_single_bit(align))
      luaL_error(lua_, "integral size %d is not a power of 2", static_cast<int>(align));
    return (align - (at & (align - 1))) & (align - 1);
  }

  lua_State* lua_;
  std::string_view rest_;
  std::size_t alignment_ = 1;
  bool little_ = std::endian::native == std::endian::little;
};

// Appends the low `size` bytes of a number; beyond eight of them its sign is extended.
void append_integer(PaidBytes& out, std::uint64_t value, std::size_t size, bool little) {
  const char beyond = static_cast<std::int64_t>(value) < 0 ? '\xff' : '\0';
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += i < 8 ? static_cast<char>(value >> (8 * i) & 0xff) : beyond;
  if (!little) std::ranges::reverse(bytes);
  out.add(bytes);
}

std::uint64_t whole_number(lua_State* lua, int argument) {
  const lua_Number value = luaL_checknumber(lua, argument);
  constexpr lua_Number signed_limit = 9223372036854775808.0;
  if (value < 0)
    return value <= -signed_limit ? 1ull << 63 : static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  return value >= 2 * signed_limit || std::isnan(value) ? 0 : static_cast<std::uint64_t>(value);
}

template <class Real>
void append_real(PaidBytes& out, Real value, bool little) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  if (little != (std::endian::native == std::endian::little)) std::ranges::reverse(bytes);
  out.add(bytes);
}

template <class Real>
Real read_real(std::string_view bytes, bool little) {
  std::string copy(bytes);
  if (little != (std::endian::native == std::endian::little)) std::ranges::reverse(copy);
  Real value;
  std::memcpy(&value, copy.data(), sizeof value);
  return value;
}

lua_Number read_integer(std::string_view bytes, bool little, bool is_signed) {
  std::uint64_t value = 0;
  const std::size_t size = std::min<std::size_t>(bytes.size(), 8);
  for (std::size_t i = 0; i < size; ++i) {
    const char byte = little ? bytes[i] : bytes[bytes.size() - 1 - i];
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << (8 * i);
  }
  if (!is_signed) return static_cast<lua_Number>(value);
  if (size < 8 && (value >> (8 * size - 1) & 1) != 0) value |= ~std::uint64_t{0} << (8 * size);
  return static_cast<lua_Number>(static_cast<std::int64_t>(value));
}

bool is_signed(char letter) { return letter == 'b' || letter == 'h' || letter == 'l' || letter == 'i'; }

int pack_struct(lua_State* lua) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  Format format(lua, {text, size});
  PaidBytes out(lua);
  int argument = 2;
  for (Piece piece{}; format.next(out.size(), piece);) {
    out.add(piece.padding, '\0');
    switch (piece.letter) {
      case 'x':
        out.add(1, '\0');
        break;
      case 'f':
        append_real(out, static_cast<float>(luaL_checknumber(lua, argument++)), format.little());
        break;
      case 'd':
        append_real(out, luaL_checknumber(lua, argument++), format.little());
        break;
      case 's':
      case 'c': {
        std::size_t length = 0;
        const char* bytes = luaL_checklstring(lua, argument++, &length);
        const std::size_t taken = piece.size == 0 ? length : piece.size;
        luaL_argcheck(lua, length >= taken, argument - 1, "string too short");
        out.add({bytes, taken});
        if (piece.letter == 's') out.add(1, '\0');
        break;
      }
      default:
        append_integer(out, whole_number(lua, argument++), piece.size, format.little());
    }
  }
  out.push();
  return 1;
}

// The size of the text at `at`: up to a zero byte, or given by the number read before it.
std::size_t text_size(lua_State* lua, const Piece& piece, std::string_view data, std::size_t at,
                      int& values) {
  if (piece.letter == 's') {
    const std::size_t end = data.find('\0', at);
    if (end == std::string_view::npos) luaL_error(lua, "unfinished string in data");
    Budget::of(lua).spend_bytes(lua, end - at);
    return end - at;
  }
  if (piece.size != 0) return piece.size;
  if (values == 0 || lua_isnumber(lua, -1) == 0) luaL_error(lua, "format 'c0' needs a previous size");
  const lua_Number size = lua_tonumber(lua, -1);
  lua_pop(lua, 1);
  --values;
  if (!(size >= 0) || size > static_cast<lua_Number>(data.size() - at))
    luaL_argerror(lua, 2, "data string too short");
  return static_cast<std::size_t>(size);
}

int unpack_struct(lua_State* lua) {
  std::size_t format_size = 0;
  const char* format_text = luaL_checklstring(lua, 1, &format_size);
  std::size_t size = 0;
  const char* bytes = luaL_checklstring(lua, 2, &size);
  const std::string_view data(bytes, size);
  const lua_Integer first = luaL_optinteger(lua, 3, 1);
  luaL_argcheck(lua, first >= 1 && static_cast<std::size_t>(first) - 1 <= size, 3,
                "offset must be 1 or greater");
  std::size_t at = static_cast<std::size_t>(first) - 1;
  Format format(lua, {format_text, format_size});
  int values = 0;
  const auto need = [&](std::size_t wanted) {
    if (wanted > size - std::min(at, size)) luaL_argerror(lua, 2, "data string too short");
  };
  for (Piece piece{}; format.next(at, piece);) {
    need(piece.padding + piece.size);
    at += piece.padding;
    luaL_checkstack(lua, 2, "too many results");
    if (piece.letter == 'x') {
      ++at;
      continue;
    }
    if (piece.letter == 's' || piece.letter == 'c') {
      const std::size_t length = text_size(lua, piece, data, at, values);
      lua_pushlstring(lua, bytes + at, length);
      at += length + (piece.letter == 's' ? 1 : 0);
    } else {
      const std::string_view field = data.substr(at, piece.size);
      lua_Number value = 0;
      if (piece.letter == 'f') {
        value = static_cast<lua_Number>(read_real<float>(field, format.little()));
      } else if (piece.letter == 'd') {
        value = read_real<double>(field, format.little());
      } else {
        value = read_integer(field, format.little(), is_signed(piece.letter));
      }
      lua_pushnumber(lua, value);
      at += piece.size;
    }
    ++values;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at + 1));
  return values + 1;
}

int struct_size(lua_State* lua) {
  std::size_t length = 0;
  const char* text = luaL_checklstring(lua, 1, &length);
  Format format(lua, {text, length});
  std::size_t total = 0;
  for (Piece piece{}; format.next(total, piece);) {
    if (piece.letter == 's') return luaL_argerror(lua, 1, "variable-size format in 'size'");
    if (piece.letter == 'c' && piece.size == 0)
      return luaL_argerror(lua, 1, "variable-length format in 'size'");
    total += piece.padding + piece.size;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(total));
  return 1;
}

}  // namespace

int open_struct(lua_State* lua) {
  constexpr luaL_Reg library[] = {
      {"pack", pack_struct}, {"unpack", unpack_struct}, {"size", struct_size}, {nullptr, nullptr}};
  lua_newtable(lua);
  luaL_register(lua, nullptr, library);
  return 1;
}

}  // namespace weir::kv
