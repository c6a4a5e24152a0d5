// What C++23 can find out about an aggregate without macros: how many fields it has, references to them,
// their names.
//
// Fields are counted by trying how many values initialise the aggregate, so aggregates that travel must have
// no C arrays, base classes or references; the compiler reports the first two. most_fields bounds the count.
// Names come from how the compiler prints a pointer to the field; GCC 12 and clang 19 do.
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weir::rpc {

constexpr std::size_t most_fields = 24;

struct AnyField {
  template <class T>
  operator T() const;  // never defined: only asked whether it would do
};

template <class T, std::size_t... I>
constexpr bool takes_fields(std::index_sequence<I...>) {
  return requires { T{((void)I, AnyField{})...}; };
}
template <class T, std::size_t N = most_fields>
constexpr std::size_t count_fields() {
  if constexpr (takes_fields<T>(std::make_index_sequence<N>()))
    return N;
  else if constexpr (N > 0)
    return count_fields<T, N - 1>();
  else
    return 0;
}
template <class T>
struct AnyBase {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>)
  operator Base() const;
};
template <class T>
concept HasBase = requires { T{AnyBase<T>{}}; };

// An array takes as many values as it has elements, unless its own stand in braces: field I is one if empty
// braces for it leave no room for the values behind it.
template <class T, std::size_t... Before, std::size_t... Behind>
constexpr bool is_c_array(std::index_sequence<Before...>, std::index_sequence<Behind...>) {
  return requires { T{((void)Before, AnyField{})..., {}}; } &&
         !requires { T{((void)Before, AnyField{})..., {}, ((void)Behind, AnyField{})...}; };
}
template <class T, std::size_t... I>
constexpr bool has_c_array(std::index_sequence<I...>) {
  return (is_c_array<T>(std::make_index_sequence<I>(), std::make_index_sequence<sizeof...(I) - 1 - I>()) ||
          ...);
}
template <class T>
constexpr bool has_plain_fields =
    !HasBase<T> && !has_c_array<T>(std::make_index_sequence<count_fields<T>()>());
// 0 of an aggregate that has others, which fields_of() refuses.
template <class T>
constexpr std::size_t field_count =
    has_plain_fields<std::remove_cv_t<T>> ? count_fields<std::remove_cv_t<T>>() : 0;

// References to all fields of `value`, in order.
template <class T>
constexpr auto fields_of(T& value) {
  using Plain = std::remove_cv_t<T>;
  constexpr std::size_t count = field_count<T>;
  static_assert(has_plain_fields<Plain>,
                "an aggregate with a base class or a C array does not travel as it is: use a member and "
                "std::array instead, or specialise weir::rpc::Wire for it");
  static_assert(!has_plain_fields<Plain> || !takes_fields<Plain>(std::make_index_sequence<most_fields + 1>()),
                "an aggregate with more fields than most_fields: specialise weir::rpc::Wire for it");
  if constexpr (count == 0) {
    return std::tie();
  } else if constexpr (count == 1) {
    auto& [a] = value;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = value;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = value;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = value;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = value;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = value;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  } else if constexpr (count == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (count == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  } else if constexpr (count == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  } else if constexpr (count == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  } else if constexpr (count == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
  } else if constexpr (count == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
  } else if constexpr (count == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  } else if constexpr (count == 24) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
  }
}

template <class T>
struct Specimen {
  T value;
};
// Never defined: only addresses of its fields are taken, at compile time.
template <class T>
extern const Specimen<T> specimen;

template <class T>
struct FieldPointer {
  const T* pointer;
};

template <auto Field>
constexpr std::string_view name_of_field() {
  // "...value.shop::Order::items)}; ..." with GCC, "...value.items}]" with clang
  std::string_view text = __PRETTY_FUNCTION__;
#ifdef __clang__
  text = text.substr(0, text.rfind('}'));
#else
  text = text.substr(0, text.rfind(")}"));
#endif
  std::size_t begin = text.size();
  while (begin > 0 && text[begin - 1] != ':' && text[begin - 1] != '.' && text[begin - 1] != '>') --begin;
  return text.substr(begin);
}

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
template <class T, std::size_t I>
constexpr std::string_view field_name = [] {
  constexpr auto* pointer = &std::get<I>(fields_of(specimen<T>.value));
  return name_of_field<FieldPointer<std::remove_cvref_t<decltype(*pointer)>>{pointer}>();
}();
#ifdef __clang__
#pragma clang diagnostic pop
#endif

template <class T>
constexpr std::string_view qualified_type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  const std::size_t begin = text.find("T = ") + 4;
  return text.substr(begin, text.find_first_of(";]", begin) - begin);
}

// "shop::Order" as "Order".
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  const std::size_t begin = text.find("T = ") + 4;
  text = text.substr(begin, text.find_first_of(";]", begin) - begin);
  const std::size_t last = text.rfind("::", text.find('<'));
  return last == std::string_view::npos ? text : text.substr(last + 2);
}

}  // namespace weir::rpc
