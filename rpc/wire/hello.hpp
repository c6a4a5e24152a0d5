// What an end of a connection says of itself when the connection begins: by which version of these rules it
// goes, and what it knows besides what every release does.
//
// It travels in the `id` of the settings frame (frame.hpp), which releases without a hello write as 0 and do
// not look at: each end hears what the other knows, an older one knows nothing more, and nobody sends what
// the other does not know. The client says its hello first and waits for the server's before connect() gives
// the connection. Pure.
#pragma once

#include <cstdint>

namespace weir::rpc {

enum class Feature : std::uint32_t {
  schemas = 1,      // requests say which types the caller has (agreed_schemas.hpp)
  metadata = 2,     // requests and replies bring some (metadata.hpp)
  details = 4,      // replies bring values with failures (error_details.hpp)
  enumerators = 8,  // the types of a caller have the names of enums' values (codec/schema.hpp)
};

struct Hello {
  std::uint16_t version = 0;   // 0: a release without a hello
  std::uint32_t features = 0;  // bits of Feature; those that this end does not know mean nothing to it

  constexpr bool knows(Feature one) const { return (features & static_cast<std::uint32_t>(one)) != 0; }
  bool operator==(const Hello&) const = default;
};

inline constexpr Hello own_hello{1, 1 | 2 | 4 | 8};  // each Feature

// Bits 0 to 31: features; 32 to 47: version; the other bits are 0 and ignored.
constexpr std::uint64_t word_of(const Hello& hello) {
  return std::uint64_t{hello.version} << 32 | hello.features;
}
constexpr Hello hello_of(std::uint64_t word) {
  return {static_cast<std::uint16_t>(word >> 32), static_cast<std::uint32_t>(word)};
}

}  // namespace weir::rpc
