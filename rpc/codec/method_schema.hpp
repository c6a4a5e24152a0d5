// The types of a function as text, with a number that is equal for equal texts: what the two ends of a call
// compare.
//
// Made once for each function that a program calls or serves. Threading: any.
#pragma once

#include <cstdint>
#include <string>

#include "rpc/codec/method.hpp"
#include "rpc/codec/schema.hpp"

namespace weir::rpc {

struct MethodSchema {
  std::string text;      // codec/schema.hpp; empty if the function's codec does not tell
  std::uint64_t id = 0;  // 0: is not compared
};

// With the number of the text.
MethodSchema numbered_schema(std::string text);

template <auto F>
const MethodSchema& schema_of() {
  static const MethodSchema made = [] {
    using C = typename CodecOf<F>::type;
    if constexpr (std::is_same_v<C, MessagePack>) {
      SchemaText text;
      describe_method<ArgumentsOf<F>, required_arguments<F>, typename Method<F>::reads,
                      typename Method<F>::writes, ResultOf<F>>(text);
      return numbered_schema(std::move(text.text));
    } else if constexpr (requires { C::template schema<ArgumentsOf<F>, ResultOf<F>>(); }) {
      return MethodSchema{C::template schema<ArgumentsOf<F>, ResultOf<F>>(), 0};
    } else {
      return MethodSchema();
    }
  }();
  return made;
}

}  // namespace weir::rpc
