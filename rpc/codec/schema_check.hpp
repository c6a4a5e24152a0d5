// Whether what one end writes can be read by the other, by what each says of its types (schema.hpp). Pure.
//
// Growth is taken: fields at the end of an aggregate, which the reader skips or fills with their defaults;
// alternatives at the end of a variant, at the reader; parameters that may be left out; integers that became
// wider and values that became optional, at the reader. Everything else is not: other kinds, units, names or
// order of fields. Names of aggregates are not compared: they do not travel. Nor can parameters be by name,
// since the compiler knows none: two of one type that changed places go unseen.
//
// What a peer says of its types is not trusted: it may be anything, is bounded in length and depth, and makes
// a refusal where it does not parse. Threading: any.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weir::rpc {

inline constexpr std::size_t max_schema_bytes =
    16 << 10;  // longer ones are not compared, but for being the same

// Why a client built for `callers` cannot call the function that a server describes as `served`: "argument 2:
// i64[s] at the caller, i64[ms] at the server". nullopt: it can.
std::optional<std::string> why_not_callable(std::string_view callers, std::string_view served);

}  // namespace weir::rpc
