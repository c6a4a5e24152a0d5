// What the compiler knows of a function: its name on the wire, its arguments, its result.
//
// The name is the qualified name with dots: shop::place is "shop.place", a member &shop::Orders::get
// "shop.Orders.get"; unnamed namespaces leave no trace. The method's number on the wire is the name's FNV-1a
// hash.
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "rpc/codec/codec.hpp"

// Outside our own namespace, whose names GCC prints without their scope in here.
namespace weir_printed {
template <auto F>
constexpr std::string_view function() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("F = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  return text.front() == '&' ? text.substr(1) : text;
}
}  // namespace weir_printed

namespace weir::rpc {

class Context;
struct MessagePack;
template <class T, class C = MessagePack>
class Reader;
template <class T, class C = MessagePack>
class Writer;

constexpr std::uint64_t method_id(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Another codec for one function, for both ends:  template <> struct weir::rpc::CodecOf<place> { using type =
// Mine; };
template <auto F>
struct CodecOf {
  using type = MessagePack;
};

// The name as an array of characters that lives as long as the program.
template <auto F>
struct MethodName {
  static constexpr auto made = [] {
    std::array<char, 256> name{};
    std::size_t size = 0;
    std::string_view from = weir_printed::function<F>();
    while (!from.empty()) {
      for (const std::string_view nothing : {"{anonymous}::", "(anonymous namespace)::"})
        if (from.starts_with(nothing)) from.remove_prefix(nothing.size());
      const bool colons = from.starts_with("::");
      name.at(size++) = colons ? '.' : from.front();
      from.remove_prefix(colons ? 2 : 1);
    }
    return std::pair(name, size);
  }();
  static constexpr std::string_view text{made.first.data(), made.second};
};
template <auto F>
constexpr std::string_view method_name = MethodName<F>::text;
template <auto F>
constexpr std::uint64_t method_number = method_id(method_name<F>);

template <class T>
constexpr bool is_result = false;
template <class T>
constexpr bool is_result<Result<T>> = true;

// A view that a function returns points into its server's memory: the caller gets a copy.
template <class T>
struct OwnedBy {
  using type = T;
};
template <>
struct OwnedBy<std::string_view> {
  using type = std::string;
};
template <>
struct OwnedBy<std::span<const std::byte>> {
  using type = std::vector<std::byte>;
};

template <class T>
struct ResultTraits {
  using type = T;
  static constexpr bool coroutine = false;
};
template <class T>
struct ResultTraits<Result<T>> : ResultTraits<T> {};
template <class T>
struct ResultTraits<asio::awaitable<T>> {
  using type = typename ResultTraits<T>::type;
  static constexpr bool coroutine = true;
};

// What a function reads of its caller as a stream, and writes to it: a Reader<T> or Writer<T> among its
// parameters. T is void if there is none.
template <class P>
struct StreamEnd {
  using reads = void;
  using writes = void;
};
template <class T, class C>
struct StreamEnd<Reader<T, C>> {
  using reads = T;
  using writes = void;
};
template <class T, class C>
struct StreamEnd<Writer<T, C>> {
  using reads = void;
  using writes = T;
};
template <class P>
constexpr bool is_stream_end =
    !std::is_void_v<typename StreamEnd<P>::reads> || !std::is_void_v<typename StreamEnd<P>::writes>;
template <class P>
constexpr bool travels = !std::is_same_v<P, Context&> && !is_stream_end<P>;

// The only one of T... that is not void, or void.
template <class... T>
struct OneOf {
  using type = void;
};
template <class First, class... Rest>
struct OneOf<First, Rest...> {
  using rest = typename OneOf<Rest...>::type;
  static_assert(std::is_void_v<First> || std::is_void_v<rest>,
                "a function has one Reader and one Writer at most");
  using type = std::conditional_t<std::is_void_v<First>, rest, First>;
};

// The arguments that travel: all but a Context&, and the ends of streams.
template <class... A>
struct Travelling;
template <>
struct Travelling<> {
  using type = std::tuple<>;
};
template <class First, class... Rest>
struct Travelling<First, Rest...> {
  using rest = typename Travelling<Rest...>::type;
  static constexpr bool stays = !travels<First>;
  static_assert(stays || !std::is_lvalue_reference_v<First> ||
                    std::is_const_v<std::remove_reference_t<First>>,
                "a function that is called remotely takes values or const references");
  using type =
      std::conditional_t<stays, rest,
                         decltype(std::tuple_cat(std::declval<std::tuple<std::remove_cvref_t<First>>>(),
                                                 std::declval<rest>()))>;
};

template <class R, class Object, class... A>
struct Signature {
  using object = Object;  // void for a free function
  using result = typename ResultTraits<R>::type;
  using arguments = typename Travelling<A...>::type;
  static constexpr bool coroutine = ResultTraits<R>::coroutine;
  using reads = typename OneOf<typename StreamEnd<A>::reads...>::type;
  using writes = typename OneOf<typename StreamEnd<A>::writes...>::type;
  static constexpr bool streams = !std::is_void_v<reads> || !std::is_void_v<writes>;
  static_assert(coroutine || !streams, "a function with a Reader or a Writer is a coroutine");
};
template <class F>
struct SignatureOf;
template <class R, class... A>
struct SignatureOf<R (*)(A...)> : Signature<R, void, A...> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...) noexcept> : Signature<R, void, A...> {};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...)> : Signature<R, C, A...> {};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...) const> : Signature<R, C, A...> {};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...) noexcept> : Signature<R, C, A...> {};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...) const noexcept> : Signature<R, C, A...> {};

template <auto F>
using Method = SignatureOf<decltype(F)>;
template <auto F>
using ResultOf = typename OwnedBy<typename Method<F>::result>::type;
template <auto F>
using ArgumentsOf = typename Method<F>::arguments;

// Is `From` acceptable where the function takes `To`? Text may come as anything that a string_view can be
// made of.
template <class From, class To>
concept PassableAs =
    std::is_convertible_v<From, To> || (Textual<To> && std::is_convertible_v<From, std::string_view>);

// `value` as the argument of type To: without a copy where it is one already, or is text.
template <class To, class From>
decltype(auto) as_argument(const From& value) {
  if constexpr (std::is_same_v<To, From>)
    return (value);
  else if constexpr (Textual<To>)
    return std::string_view(value);
  else
    return static_cast<To>(value);
}

// The arguments of F as a tuple, references where they are of its types already. Checked when the call is
// compiled.
template <auto F, class... A, std::size_t... I>
auto arguments_for(std::index_sequence<I...>, const A&... arguments) {
  using To = ArgumentsOf<F>;
  static_assert(sizeof...(A) == std::tuple_size_v<To>, "the function takes another number of arguments");
  static_assert((PassableAs<const A&, std::tuple_element_t<I, To>> && ...),
                "an argument is not of the type that the function takes");
  using Passed = std::tuple<decltype(as_argument<std::tuple_element_t<I, To>>(arguments))...>;
  return Passed(as_argument<std::tuple_element_t<I, To>>(arguments)...);
}
template <auto F, class... A>
auto arguments_for(const A&... arguments) {
  return arguments_for<F>(std::make_index_sequence<sizeof...(A)>(), arguments...);
}

}  // namespace weir::rpc
