// Types as text, so that a program that knows none of a server's types can call it (`weir rpc`).
//
//   type   = "nil" | "bool" | "u8".."u64" | "i8".."i64" | "f32" | "f64" | "str" | "bin" | "any"
//          | "[" type "]" | "{" type ":" type "}" | "?" type | "(" type, ... ")" | "<" type | ... ">"
//          | name "{" field ": " type, ... "}"      an aggregate, in full where it first appears
//          | name                                   one that was given in full before
//   method = "(" type, ... ["stream" type] ")" " -> " type
//          | "(" type, ... ["stream" type] ")" " -> stream " type [", " type]     result nil if not given
// What follows "stream" comes or goes one by one, in any number.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "rpc/codec/codec.hpp"

namespace weir::rpc {

struct SchemaText {
  std::string text;
  std::vector<std::string_view> named;  // aggregates given in full
};

template <class T>
void describe(SchemaText& to);

template <class T, std::size_t... I>
void describe_fields(SchemaText& to, std::index_sequence<I...>) {
  to.text += "{";
  auto fields = [&]<std::size_t N>() {
    to.text.append(N == 0 ? "" : ", ").append(field_name<T, N>).append(": ");
    describe<std::remove_cvref_t<decltype(std::get<N>(fields_of(std::declval<T&>())))>>(to);
  };
  (fields.template operator()<I>(), ...);
  to.text += "}";
}

template <class... T>
void describe_list(SchemaText& to, std::string_view open, [[maybe_unused]] std::string_view between,
                   std::string_view close) {
  to.text += open;
  bool first = true;
  (((first ? to.text : to.text += between), first = false, describe<T>(to)), ...);
  to.text += close;
}

template <class T>
struct DescribeParts;
template <template <class...> class Template, class... T>
struct DescribeParts<Template<T...>> {
  static void list(SchemaText& to, std::string_view open, std::string_view between, std::string_view close) {
    describe_list<T...>(to, open, between, close);
  }
};

template <class T>
void describe(SchemaText& to) {
  if constexpr (Custom<T>) {
    if constexpr (requires { Wire<T>::schema; })
      to.text += Wire<T>::schema;
    else
      to.text += "any";
  } else if constexpr (Empty<T>) {
    to.text += "nil";
  } else if constexpr (std::same_as<T, bool>) {
    to.text += "bool";
  } else if constexpr (std::integral<T>) {
    to.text.append(std::is_signed_v<T> ? "i" : "u").append(std::to_string(8 * sizeof(T)));
  } else if constexpr (std::is_enum_v<T>) {
    describe<std::underlying_type_t<T>>(to);
  } else if constexpr (std::floating_point<T>) {
    to.text += std::same_as<T, float> ? "f32" : "f64";
  } else if constexpr (Textual<T>) {
    to.text += "str";
  } else if constexpr (Binary<T>) {
    to.text += "bin";
  } else if constexpr (Optional<T>) {
    to.text += "?";
    describe<typename T::value_type>(to);
  } else if constexpr (Variant<T>) {
    DescribeParts<T>::list(to, "<", " | ", ">");
  } else if constexpr (Duration<T>) {
    describe<typename T::rep>(to);
  } else if constexpr (Map<T>) {
    to.text += "{";
    describe<typename T::key_type>(to);
    to.text += ": ";
    describe<typename T::mapped_type>(to);
    to.text += "}";
  } else if constexpr (Sequence<T>) {
    to.text += "[";
    describe<typename T::value_type>(to);
    to.text += "]";
  } else if constexpr (requires { DescribeParts<T>::list; }) {
    DescribeParts<T>::list(to, "(", ", ", ")");
  } else if constexpr (Tuple<T>) {  // std::array
    to.text += "[";
    describe<typename T::value_type>(to);
    to.text += "]";
  } else {
    constexpr std::string_view name = type_name<T>();
    to.text += name;
    if (std::ranges::find(to.named, name) != to.named.end()) return;
    to.named.push_back(name);
    describe_fields<T>(to, std::make_index_sequence<field_count<T>>());
  }
}

// Reads and Writes are the types that a function takes and gives as streams, void for none.
template <class Arguments, class Reads, class Writes, class R>
void describe_method(SchemaText& to) {
  DescribeParts<Arguments>::list(to, "(", ", ", "");
  if constexpr (!std::is_void_v<Reads>) {
    to.text += std::tuple_size_v<Arguments> > 0 ? ", stream " : "stream ";
    describe<Reads>(to);
  }
  to.text += ") -> ";
  if constexpr (!std::is_void_v<Writes>) {
    to.text += "stream ";
    describe<Writes>(to);
    if constexpr (Empty<R>) return;
    to.text += ", ";
  }
  describe<R>(to);
}

}  // namespace weir::rpc
