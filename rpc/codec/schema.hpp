// Types as text, so that a program that knows none of a server's types can call it (`weir rpc`).
//
//   type   = "nil" | "bool" | "u8".."u64" | "i8".."i64" | "f32" | "f64" | "str" | "bin" | "any"
//          | "[" type "]" | "{" type ":" type "}" | "?" type | "(" type, ... ")" | "<" type | ... ">"
//          | name "{" field ": " type, ... "}"      an aggregate, in full where it first appears
//          | name                                   one that was given in full before
//          | number "[" unit "]"                    a duration: i64[ms]
//          | number "<" name = value, ... ">"       an enum: u8<open = 0, closed = 1> (enumerators.hpp)
// Names are letters, digits and underscores: `Page<shop::Item>` is Page_Item, and of two types with one name
// the second has its namespaces before it.
//   method = "(" parameter, ... ["stream" type] ")" " -> " type
//          | "(" parameter, ... ["stream" type] ")" " -> stream " type [", " type]     result nil if not
//          given
//   parameter = ["optional "] type
// What follows "stream" comes or goes one by one, in any number; what follows "optional" a caller may leave
// out. schema_check.hpp says which of two such texts go together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "rpc/codec/codec.hpp"
#include "rpc/codec/enumerators.hpp"

namespace weir::rpc {

struct SchemaText {
  std::string text;
  bool only_names = false;  // of aggregates
  bool enumerators = true;  // of enums; false: as releases before Feature::enumerators
  struct Named {
    std::string_view type;  // as the compiler spells it, with its namespaces
    std::string name;
  };
  std::vector<Named> named;  // aggregates given in full
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

// Of seconds: "ms", "h", "1/60s".
std::string unit_name(std::intmax_t numerator, std::intmax_t denominator);

// Letters, digits and single underscores.
std::string as_a_name(std::string_view text);

// Of an aggregate: without its namespaces, and of one that is made from a template with what it is made of.
template <class T>
std::string schema_name() {
  std::string name(type_name<T>());
  name.resize(std::min(name.find('<'), name.size()));
  if constexpr (requires { DescribeParts<T>::list; }) {
    SchemaText made_of;
    made_of.only_names = true;
    DescribeParts<T>::list(made_of, "_", "_", "");
    name += made_of.text;
  }
  return as_a_name(name);
}

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
    if constexpr (EveryNumberIsAValue<T>) {
      if (const std::string names = to.enumerators && !to.only_names ? enumerators_text<T>() : "";
          !names.empty())
        to.text.append("<").append(names).append(">");
    }
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
    to.text.append("[").append(unit_name(T::period::num, T::period::den)).append("]");
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
  } else if constexpr (Tuple<T> && requires { DescribeParts<T>::list; }) {
    DescribeParts<T>::list(to, "(", ", ", ")");
  } else if constexpr (Tuple<T>) {  // std::array
    to.text += "[";
    describe<typename T::value_type>(to);
    to.text += "]";
  } else {
    constexpr std::string_view type = qualified_type_name<T>();
    if (const auto known = std::ranges::find(to.named, type, &SchemaText::Named::type);
        known != to.named.end()) {
      to.text += known->name;
      return;
    }
    std::string name = schema_name<T>();
    if (std::ranges::find(to.named, name, &SchemaText::Named::name) != to.named.end()) name = as_a_name(type);
    to.text += name;
    to.named.push_back({type, std::move(name)});
    if (to.only_names) return;
    describe_fields<T>(to, std::make_index_sequence<field_count<T>>());
  }
}

// Parameters from `Required` on may be left out.
template <std::size_t Required, class... T>
void describe_parameters(SchemaText& to, const std::tuple<T...>*) {
  std::size_t at = 0;
  ((to.text.append(at == 0 ? "" : ", ").append(at >= Required ? "optional " : ""), ++at, describe<T>(to)),
   ...);
}

// Reads and Writes are the types that a function takes and gives as streams, void for none.
template <class Arguments, std::size_t Required, class Reads, class Writes, class R>
void describe_method(SchemaText& to) {
  to.text += "(";
  describe_parameters<Required>(to, static_cast<const Arguments*>(nullptr));
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
