// What the compiler knows of a function: its name on the wire, its arguments, its result.
//
// The name is the qualified name with dots: shop::place is "shop.place", a member &shop::Orders::get
// "shop.Orders.get"; unnamed namespaces leave no trace. A function may have another one, whatever it is
// called in C++ (stable_name). The method's number on the wire is the name's FNV-1a hash.
//
// Arguments may have types other than the function's, as long as no value is lost. An integer may have a
// wider type; then its value is checked before the call is sent. Any other conversion to a bool or an integer
// is refused at compile time.
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <limits>
#include <optional>
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

// A name that stays when the function, its class or its namespace is renamed, for both ends:
//   template <> inline constexpr std::string_view weir::rpc::stable_name<shop::place_order> = "shop.place";
template <auto F>
inline constexpr std::string_view stable_name{};

// Values of the last parameters, which callers may leave out, those of older releases among them. For both
// ends, or the server alone:
//   template <> inline constexpr auto weir::rpc::defaults<shop::brew> = std::tuple(std::chrono::minutes(3));
template <auto F>
inline constexpr auto defaults = std::tuple<>();

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
constexpr std::string_view method_name = [] {
  if constexpr (stable_name<F>.empty())
    return MethodName<F>::text;
  else
    return stable_name<F>;
}();
template <auto F>
constexpr std::uint64_t method_number = method_id(method_name<F>);

template <class T>
constexpr bool is_result = false;
template <class T>
constexpr bool is_result<Result<T>> = true;

// A view that a function returns points into its server's memory, so the caller gets a copy.
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
  static constexpr bool with_context = (std::is_same_v<A, Context&> || ...);
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

template <auto F>
constexpr std::size_t default_count = std::tuple_size_v<std::remove_cvref_t<decltype(defaults<F>)>>;
// The least number of arguments in a call of F.
template <auto F>
constexpr std::size_t required_arguments = [] {
  constexpr std::size_t all = std::tuple_size_v<ArgumentsOf<F>>;
  static_assert(default_count<F> <= all, "a function has more defaults than arguments that travel");
  return all - default_count<F>;
}();

// What would be lost silently if a `From` were passed to a function that takes a `To`, as C++ converts it.
enum class Loss {
  nothing,
  range,     // some of an integer's values: each call looks
  fraction,  // a floating-point number becomes an integer
  sense,     // anything becomes a bool
};

template <class T>
concept Counting = std::integral<T> || (std::is_enum_v<T> && std::is_convertible_v<T, long long>);
template <class T>
struct NumberOf {
  using type = T;
};
template <class T>
  requires std::is_enum_v<T>
struct NumberOf<T> {
  using type = std::underlying_type_t<T>;
};

template <class From, class To>
constexpr Loss loss() {
  if constexpr (std::same_as<From, To> || std::same_as<From, std::nullopt_t>) {
    return Loss::nothing;
  } else if constexpr (Optional<To> && Optional<From>) {
    return loss<typename From::value_type, typename To::value_type>();
  } else if constexpr (Optional<To>) {
    return loss<From, typename To::value_type>();
  } else if constexpr (std::same_as<To, bool>) {
    return requires(const From& from) { To{from}; } && std::is_class_v<From> ? Loss::nothing : Loss::sense;
  } else if constexpr (std::integral<To> && std::floating_point<From>) {
    return Loss::fraction;
  } else if constexpr (std::integral<To> && Counting<From>) {
    using Given = std::numeric_limits<typename NumberOf<From>::type>;
    using Taken = std::numeric_limits<To>;
    const bool all = Given::digits <= Taken::digits && Given::is_signed <= Taken::is_signed;
    return all ? Loss::nothing : Loss::range;
  } else {
    return Loss::nothing;
  }
}
template <class From, class To>
constexpr Loss loss_of = loss<std::decay_t<From>, To>();

// Whether `From` is acceptable where the function takes `To`. Text may come as any type from which a
// string_view can be made.
template <class From, class To>
concept PassableAs =
    (std::is_convertible_v<From, To> || (Textual<To> && std::is_convertible_v<From, std::string_view>)) &&
    loss_of<From, To> <= Loss::range;

// `value` as an argument of type To: without a copy if it has that type already, or is text.
template <class To, class From>
decltype(auto) as_argument(const From& value) {
  if constexpr (std::is_same_v<To, From>)
    return (value);
  else if constexpr (Textual<To>)
    return std::string_view(value);
  else
    return static_cast<To>(value);
}

// Checks that an argument is acceptable, or says why not.
template <class To, class From>
constexpr bool passes() {
  constexpr Loss lost = loss_of<From, To>;
  static_assert(lost != Loss::sense, "the function takes a bool there: pass one, a comparison say");
  static_assert(lost != Loss::fraction,
                "the function takes an integer there: round what you pass, as std::llround does");
  static_assert(lost == Loss::sense || lost == Loss::fraction || PassableAs<From, To>,
                "an argument is not of the type that the function takes");
  return true;
}

// The arguments of F as a tuple, references where they are of its types already. Checked when the call is
// compiled; numbers, by out_of_range(), when it is made.
template <auto F, class... A, std::size_t... I>
auto arguments_for(std::index_sequence<I...>, const A&... arguments) {
  using To = ArgumentsOf<F>;
  static_assert(sizeof...(A) >= required_arguments<F> && sizeof...(A) <= std::tuple_size_v<To>,
                "the function takes another number of arguments");
  static_assert((passes<std::tuple_element_t<I, To>, const A&>() && ...));
  using Passed = std::tuple<decltype(as_argument<std::tuple_element_t<I, To>>(arguments))...>;
  return Passed(as_argument<std::tuple_element_t<I, To>>(arguments)...);
}
template <auto F, class... A>
auto arguments_for(const A&... arguments) {
  return arguments_for<F>(std::make_index_sequence<sizeof...(A)>(), arguments...);
}

// An argument whose value does not fit its type; positions count from 1. 0: an item of a stream.
struct WrongInteger {
  std::size_t position = 0;
  std::string value;
  bool is_signed = false;
  int bits = 0;
};
Error wrong_integer(std::string_view function, const WrongInteger& wrong);

template <class T>
constexpr bool is_negative(T value) {
  if constexpr (std::is_signed_v<T>)
    return value < 0;
  else
    return false;
}

template <class To, class From>
constexpr void see_range(const From& value, std::size_t position, std::optional<WrongInteger>& wrong) {
  if constexpr (loss_of<From, To> != Loss::range) {
    return;
  } else if constexpr (Optional<From>) {
    if (value) see_range<To>(*value, position, wrong);
  } else if constexpr (Optional<To>) {
    see_range<typename To::value_type>(value, position, wrong);
  } else {
    const auto given = static_cast<typename NumberOf<From>::type>(value);
    const auto taken = static_cast<To>(given);
    if (static_cast<decltype(given)>(taken) == given && is_negative(taken) == is_negative(given)) return;
    if (!wrong) wrong = {position, std::to_string(given), std::is_signed_v<To>, 8 * sizeof(To)};
  }
}

// The error in the arguments' values, if any. Nothing is checked if their types fit.
template <auto F, class... A, std::size_t... I>
std::optional<Error> out_of_range(std::index_sequence<I...>, const A&... arguments) {
  if constexpr (sizeof...(A) <= std::tuple_size_v<ArgumentsOf<F>>) {  // arguments_for() says so otherwise
    std::optional<WrongInteger> wrong;
    (see_range<std::tuple_element_t<I, ArgumentsOf<F>>>(arguments, I + 1, wrong), ...);
    if (wrong) return wrong_integer(method_name<F>, *wrong);
  }
  return std::nullopt;
}
template <auto F, class... A>
std::optional<Error> out_of_range(const A&... arguments) {
  return out_of_range<F>(std::make_index_sequence<sizeof...(A)>(), arguments...);
}

// What is called with such arguments.
template <class R>
asio::awaitable<Result<R>> refused(Error why) {
  co_return std::unexpected(std::move(why));
}

}  // namespace weir::rpc
