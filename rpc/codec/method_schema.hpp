// The types of a function as text, with a number that is equal for equal texts: what the two ends of a call
// compare.
//
// Made once for each function that a program calls or serves. Threading: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rpc/codec/method.hpp"
#include "rpc/codec/schema.hpp"

namespace weir::rpc {

struct MethodSchema {
  std::string text;      // codec/schema.hpp; empty if the function's codec does not tell
  std::uint64_t id = 0;  // 0: is not compared
  // The same for an end that does not know Feature::enumerators; empty and 0: no enum is in it.
  std::string text_without_enumerators = {};
  std::uint64_t id_without_enumerators = 0;
  std::string_view function = {};  // its name; as long as the program lasts
};

// With the numbers of the texts.
MethodSchema numbered_schema(std::string text, std::string without_enumerators = {});

// Without its name.
template <auto F>
MethodSchema types_of() {
  using C = typename CodecOf<F>::type;
  if constexpr (std::is_same_v<C, MessagePack>) {
    const auto text = [](bool enumerators) {
      SchemaText made_text;
      made_text.enumerators = enumerators;
      describe_method<ArgumentsOf<F>, required_arguments<F>, typename Method<F>::reads,
                      typename Method<F>::writes, ResultOf<F>>(made_text);
      return std::move(made_text.text);
    };
    return numbered_schema(text(true), text(false));
  } else if constexpr (requires { C::template schema<ArgumentsOf<F>, ResultOf<F>>(); }) {
    return MethodSchema{C::template schema<ArgumentsOf<F>, ResultOf<F>>(), 0};
  } else {
    return MethodSchema();
  }
}

template <auto F>
const MethodSchema& schema_of() {
  static const MethodSchema made = [] {
    MethodSchema types = types_of<F>();
    types.function = method_name<F>;
    return types;
  }();
  return made;
}

}  // namespace weir::rpc
