// Which of MessagePack's forms a C++ type takes. One concept per form; a type that fits none does not
// compile.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>

#include "rpc/codec/msgpack.hpp"

namespace weir::rpc {

// Specialise it for a type of yours that none of the forms below fits (a class with a constructor, say):
//   static void write(MsgpackWriter&, const T&);
//   static bool read(MsgpackReader&, T&);            // false after reader.fail(why), or reader.charge()
//   static constexpr std::string_view schema = "str";  // what it looks like on the wire (schema.hpp)
template <class T>
struct Wire {};

template <class T, template <class...> class Template>
constexpr bool is_made_from = false;
template <template <class...> class Template, class... A>
constexpr bool is_made_from<Template<A...>, Template> = true;

template <class T>
concept Custom = requires(MsgpackWriter& w, MsgpackReader& r, T& v) {
  Wire<T>::write(w, v);
  { Wire<T>::read(r, v) } -> std::same_as<bool>;
};
template <class T>
concept Textual = std::same_as<T, std::string> || std::same_as<T, std::string_view>;
template <class T>
concept ByteLike =
    std::same_as<std::remove_cv_t<T>, std::byte> || std::same_as<std::remove_cv_t<T>, std::uint8_t>;
template <class T>
concept Binary = std::ranges::contiguous_range<T> && ByteLike<std::ranges::range_value_t<T>>;
template <class T>
concept Optional = is_made_from<T, std::optional>;
template <class T>
concept Variant = is_made_from<T, std::variant>;
template <class T>
concept Duration = requires { typename T::period; } &&
                   std::same_as<T, std::chrono::duration<typename T::rep, typename T::period>>;
template <class T>
concept Map = std::ranges::range<T> && requires(T& t) {
  typename T::key_type;
  typename T::mapped_type;
  t.clear();
};
template <class T>
concept Sequence = std::ranges::range<T> && requires(T& t) {
  typename T::value_type;
  t.clear();
} && !Map<T> && !Textual<T> && !Binary<T>;
template <class T>
concept Tuple = requires { std::tuple_size<T>::value; };  // pair and array, too
template <class T>
concept Empty = std::same_as<T, std::monostate> || std::is_void_v<T>;
template <class T>
concept Record = std::is_aggregate_v<T> && !Tuple<T> && !std::ranges::range<T>;

}  // namespace weir::rpc
