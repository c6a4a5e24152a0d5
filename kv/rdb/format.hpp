// The constants of Redis's snapshot format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::kv::rdb {

inline constexpr int version_written = 10;  // Redis 7.0's
inline constexpr int newest_version = 12;   // Redis 7.4's
inline constexpr int first_of_valkey = 80;  // Valkey 9's; it uses no version between
inline constexpr int version_with_field_times = 12;
inline constexpr std::string_view magic = "REDIS";
inline constexpr std::string_view magic_of_valkey = "VALKEY";  // since Valkey 9; three digits follow

// Redis 7.4 and Valkey 9 each have a form of their own for hashes whose fields expire, and do not read the
// other's. Everything else both read.
enum class Dialect : std::uint8_t { redis, valkey };
inline constexpr std::size_t header_size = 9;  // the magic and four digits

enum class ValueType : std::uint8_t {
  string = 0,
  list = 1,
  set = 2,
  zset_text = 3,  // scores as text
  hash = 4,
  zset = 5,  // scores in eight bytes
  module_1 = 6,
  module_2 = 7,
  hash_zipmap = 9,
  list_ziplist = 10,
  set_intset = 11,
  zset_ziplist = 12,
  hash_ziplist = 13,
  list_of_ziplists = 14,
  stream_1 = 15,
  hash_listpack = 16,
  zset_listpack = 17,
  list_of_listpacks = 18,
  stream_2 = 19,
  set_listpack = 20,  // Redis 7.2
  stream_3 = 21,
  hash_of_valkey =
      22,  // Valkey 9, a time with each field; release candidates of Redis 7.4 wrote something else
  // Redis 7.4
  hash_timed = 24,
  hash_timed_listpack = 25,
};
// The highest time of a field.
inline constexpr std::int64_t most_field_time_ms = (std::int64_t{1} << 48) - 2;

// These appear where a value's type could.
enum class Opcode : std::uint8_t {
  slot_import = 243,  // Valkey 9: slots that the node was taking over
  slot_info = 244,    // Valkey 8: the size of a cluster's slot, to reserve memory
  function = 245,
  old_function = 246,  // from a release candidate of Redis 7.0
  module_aux = 247,
  idle_s = 248,
  frequency = 249,
  aux = 250,
  sizes = 251,  // the sizes of the database's tables, to reserve memory
  expires_at_ms = 252,
  expires_at_s = 253,
  database = 254,
  end = 255,
};
inline constexpr std::uint8_t first_opcode = 243;

// The two highest bits of a length.
inline constexpr std::uint8_t length_6_bits = 0, length_14_bits = 1, length_special = 2, text_encoded = 3;
inline constexpr std::uint8_t length_32_bits = 0x80, length_64_bits = 0x81;
// The encoding of a text: the low six bits after text_encoded.
inline constexpr std::uint8_t text_int8 = 0, text_int16 = 1, text_int32 = 2, text_lzf = 3;

// How a list node in list_of_listpacks is stored.
inline constexpr std::uint64_t node_plain = 1, node_packed = 2;

struct Error {
  enum class Kind : std::uint8_t {
    truncated,    // the bytes end too early
    corrupt,      // the bytes are invalid, or contradict each other
    unsupported,  // valid, but not supported by this server
    too_large,    // over a limit
    stopped,      // the target asked to stop
  };
  Kind kind;
  std::string what;
};

}  // namespace weir::kv::rdb
