// A digest of the data: equal for equal keys, values, databases and whether a key expires, in whatever order
// tables hold them. It is the one that Redis's DEBUG DIGEST computes, so it can be compared with another
// server's. When a key expires does not count.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kv/store/keyspace.hpp"

namespace weir::kv {

class Digest {
 public:
  // A step each: bytes whose order among their like does not count, and bytes whose order does.
  void add(std::string_view bytes);
  void mix(std::string_view bytes);
  void mix_number(std::uint32_t number);  // big-endian, as Redis mixes types and databases

  std::string_view bytes() const { return {reinterpret_cast<const char*>(value_.data()), value_.size()}; }
  std::string hex() const;

 private:
  std::array<unsigned char, 20> value_{};
};

// What a value is, its key's expiry included: mixed into `digest`.
void mix_value(Digest& digest, const Record& record);
Digest digest_of(std::span<const std::unique_ptr<Keyspace>> databases);

}  // namespace weir::kv
