// C++ values as MessagePack and back.
//
//   bool, integers, enums (as their number), float, double       boolean, integer, real
//   std::string, string_view                                      text
//   vectors, arrays and spans of std::byte or uint8_t             binary
//   std::optional                                                 nil or the value
//   sequences and sets; pairs, tuples, std::array                 array
//   maps                                                          map
//   std::variant                                                  array: the alternative's index, its value
//   chrono durations                                              their count
//   aggregates                                                    array of the fields, in order
//
// Aggregates may grow at their end: fields that the sender did not know keep their defaults, fields that the
// reader does not know are skipped. A map from names to values is read as an aggregate, too, which suits
// other languages. Views (string_view, span) point into what is read. A codec (the concept below) is how a
// function's arguments become a body; MessagePack is the default, CodecOf says otherwise for one function.
#pragma once

#include <cmath>
#include <limits>

#include "rpc/codec/aggregate.hpp"
#include "rpc/codec/crowded_bucket.hpp"
#include "rpc/codec/kinds.hpp"
#include "rpc/error.hpp"

namespace weir::rpc {

// Where the elements of a T are written. Those that its iterators make are gone after each, so they are
// copied.
template <class T, class To>
decltype(auto) writer_of_elements(To& to) {
  using Element = std::ranges::range_reference_t<const T>;
  constexpr bool lasts = std::ranges::forward_range<const T> && std::is_lvalue_reference_v<Element> &&
                         std::is_same_v<std::remove_cvref_t<Element>, typename T::value_type>;
  if constexpr (std::is_same_v<To, MsgpackWriter> && !lasts)
    return to.copying();
  else
    return (to);
}

// `to` writes the value, or counts its bytes; those of a type with a form of its own are not counted.
template <class T, class To>
void write_value(To& to, const T& value) {
  if constexpr (Custom<T>) {
    if constexpr (std::is_same_v<To, MsgpackWriter>) {
      MsgpackWriter copying = to.copying();  // what it writes may be made for that alone
      Wire<T>::write(copying, value);
    }
  } else if constexpr (std::same_as<T, bool>) {
    to.boolean(value);
  } else if constexpr (std::unsigned_integral<T>) {
    to.unsigned_integer(value);
  } else if constexpr (std::signed_integral<T>) {
    to.signed_integer(value);
  } else if constexpr (std::is_enum_v<T>) {
    write_value(to, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::same_as<T, float>) {
    to.real32(value);
  } else if constexpr (std::floating_point<T>) {
    to.real64(static_cast<double>(value));
  } else if constexpr (Textual<T>) {
    to.text(value);
  } else if constexpr (Binary<T>) {
    to.binary(std::as_bytes(std::span(value)));
  } else if constexpr (Optional<T>) {
    value ? write_value(to, *value) : to.nil();
  } else if constexpr (Variant<T>) {
    to.array(2);
    to.unsigned_integer(value.index());
    std::visit([&](const auto& alternative) { write_value(to, alternative); }, value);
  } else if constexpr (Empty<T>) {
    to.nil();
  } else if constexpr (Duration<T>) {
    write_value(to, value.count());
  } else if constexpr (Map<T>) {
    to.map(value.size());
    auto&& there = writer_of_elements<T>(to);
    for (const auto& [key, mapped] : value) {
      write_value(there, key);
      write_value(there, mapped);
    }
  } else if constexpr (Sequence<T>) {
    to.array(value.size());
    auto&& there = writer_of_elements<T>(to);
    for (const auto& element : value) write_value<typename T::value_type>(there, element);
  } else if constexpr (Tuple<T>) {
    to.array(std::tuple_size_v<T>);
    std::apply([&](const auto&... element) { (write_value(to, element), ...); }, value);
  } else {
    static_assert(Record<T>, "this type has no form in MessagePack; specialise weir::rpc::Wire for it");
    to.array(field_count<T>);
    std::apply([&](const auto&... field) { (write_value(to, field), ...); }, fields_of(value));
  }
}

template <class T>
bool read_value(MsgpackReader& from, T& value);

template <std::integral T>
bool read_integer(MsgpackReader& from, T& value) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  Wide wide = 0;
  if constexpr (std::is_signed_v<T>) {
    if (!from.signed_integer(wide)) return false;
  } else {
    if (!from.unsigned_integer(wide)) return false;
  }
  if (wide < Wide{std::numeric_limits<T>::min()} || wide > Wide{std::numeric_limits<T>::max()})
    return from.fail("an integer out of the range of its type");
  value = static_cast<T>(wide);
  return true;
}

// What libstdc++ takes for an element besides the element: the node of a list or tree, or of a hash table and
// its bucket, and what malloc puts before it.
constexpr std::size_t node_bytes = 64;
template <class T>
constexpr bool is_deque = requires(T& t) {
  t.push_front(std::declval<typename T::value_type>());
  t[0];
};
// Of the heap, though nothing was put into it: a deque begins with a block.
template <class T>
constexpr std::size_t heap_when_empty() {
  if constexpr (Custom<T>) {
    return 0;
  } else if constexpr (Sequence<T>) {
    return is_deque<T> ? 640 : 0;
  } else if constexpr (std::ranges::range<T> || Optional<T> || Variant<T>) {
    return 0;
  } else if constexpr (Tuple<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + heap_when_empty<std::remove_cvref_t<std::tuple_element_t<I, T>>>());
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (Record<T>) {
    using Fields = decltype(fields_of(std::declval<T&>()));
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + heap_when_empty<std::remove_cvref_t<std::tuple_element_t<I, Fields>>>());
    }(std::make_index_sequence<std::tuple_size_v<Fields>>());
  } else {
    return 0;
  }
}
// Of memory for each element of a sequence or a map.
template <class T>
constexpr std::size_t element_bytes() {
  using Element = typename T::value_type;
  constexpr bool in_a_row = requires(T& t) { t.reserve(1), t.data(); } || std::same_as<Element, bool>;
  if constexpr (Map<T>)
    return sizeof(Element) + node_bytes + heap_when_empty<std::remove_cv_t<typename T::key_type>>() +
           heap_when_empty<typename T::mapped_type>();
  else
    return sizeof(Element) + (in_a_row || is_deque<T> ? 0 : node_bytes) + heap_when_empty<Element>();
}

template <class T>
bool read_sequence(MsgpackReader& from, T& value) {
  std::size_t elements = 0;
  if (!from.array(elements) || !from.enter()) return false;
  if (!from.charge(elements, element_bytes<T>())) return false;
  value.clear();
  if constexpr (requires { value.reserve(elements), value.data(); }) value.reserve(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    typename T::value_type element{};
    if (!read_value(from, element)) return from.inside("element " + std::to_string(i));
    if constexpr (requires { value.push_back(std::move(element)); }) {
      value.push_back(std::move(element));
    } else if constexpr (OpenToFlooding<T>) {
      static_assert(
          requires { value.insert(std::move(element)).second; },
          "an unordered_multiset that a peer fills has to hash with weir::hash::Keyed");
      if (crowded(value, *value.insert(std::move(element)).first)) return from.fail(crowded_bucket);
    } else {
      value.insert(std::move(element));
    }
  }
  from.leave();
  return true;
}

template <class T>
bool read_map(MsgpackReader& from, T& value) {
  std::size_t pairs = 0;
  if (!from.map(pairs) || !from.enter()) return false;
  if (!from.charge(pairs, element_bytes<T>())) return false;
  value.clear();
  for (std::size_t i = 0; i < pairs; ++i) {
    typename T::key_type key{};
    typename T::mapped_type mapped{};
    if (!read_value(from, key)) return from.inside("key " + std::to_string(i));
    if (!read_value(from, mapped)) return from.inside("value " + std::to_string(i));
    const auto [place, is_new] = value.insert_or_assign(std::move(key), std::move(mapped));
    if (is_new && crowded(value, place->first)) return from.fail(crowded_bucket);
  }
  from.leave();
  return true;
}

template <class T, std::size_t I = 0>
bool read_alternative(MsgpackReader& from, std::size_t index, T& value) {
  if constexpr (I == std::variant_size_v<T>) {
    return from.fail("a variant has no alternative " + std::to_string(index));
  } else {
    if (index != I) return read_alternative<T, I + 1>(from, index, value);
    return read_value(from, value.template emplace<I>());
  }
}

template <class T>
bool read_variant(MsgpackReader& from, T& value) {
  std::size_t elements = 0, index = 0;
  if (!from.array(elements) || !from.enter()) return false;
  if (elements != 2) return from.fail("expected an array of an index and a value");
  if (!read_integer(from, index) || !read_alternative(from, index, value)) return from.inside("variant");
  from.leave();
  return true;
}

// Names are asked for only where something fails or a map comes.
template <class T, std::size_t... I>
bool read_fields(MsgpackReader& from, T& value, std::index_sequence<I...>) {
  auto fields = fields_of(value);
  std::size_t elements = 0;
  if (from.peek() == MsgpackType::map) {
    if (!from.map(elements) || !from.enter()) return false;
    for (std::size_t i = 0; i < elements; ++i) {
      std::string_view name;
      if (!from.text(name)) return false;
      bool known = false;
      if (!(... &&
            (name != field_name<T, I> || known ||
             ((known = true), read_value(from, std::get<I>(fields)) || from.inside(field_name<T, I>)))))
        return false;
      if (!known && !from.skip()) return false;
    }
  } else {
    if (!from.array(elements) || !from.enter()) return false;
    if (!(... && (I >= elements || read_value(from, std::get<I>(fields)) || from.inside(field_name<T, I>))))
      return false;
    for (std::size_t i = sizeof...(I); i < elements; ++i)
      if (!from.skip()) return false;
  }
  from.leave();
  return true;
}

template <class T, std::size_t... I>
bool read_tuple(MsgpackReader& from, T& value, std::index_sequence<I...>) {
  std::size_t elements = 0;
  if (!from.array(elements) || !from.enter()) return false;
  if (elements != sizeof...(I))
    return from.fail("expected an array of " + std::to_string(sizeof...(I)) + " elements, found " +
                     std::to_string(elements));
  if (!(... && (read_value(from, std::get<I>(value)) || from.inside("element " + std::to_string(I)))))
    return false;
  from.leave();
  return true;
}

template <class T>
bool read_binary(MsgpackReader& from, T& value) {
  std::span<const std::byte> bytes;
  if (!from.binary(bytes)) return false;
  using Element = std::remove_cv_t<std::ranges::range_value_t<T>>;
  const auto* first = reinterpret_cast<const Element*>(bytes.data());
  if constexpr (requires { value.assign(first, first); }) {
    if (!from.charge(bytes.size(), 1)) return false;
    value.assign(first, first + bytes.size());
  } else if constexpr (requires { T(first, bytes.size()); }) {
    value = T(first, bytes.size());
  } else {
    if (bytes.size() != value.size())
      return from.fail("expected " + std::to_string(value.size()) + " bytes, found " +
                       std::to_string(bytes.size()));
    if (!bytes.empty()) std::memcpy(value.data(), first, bytes.size());
  }
  return true;
}

template <class T>
bool read_value(MsgpackReader& from, T& value) {
  if constexpr (Custom<T>) {
    return Wire<T>::read(from, value);
  } else if constexpr (std::same_as<T, bool>) {
    return from.boolean(value);
  } else if constexpr (std::integral<T>) {
    return read_integer(from, value);
  } else if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    if (!read_integer(from, number)) return false;
    value = static_cast<T>(number);
    return true;
  } else if constexpr (std::floating_point<T>) {
    double real = 0;
    if (!from.real(real)) return false;
    if constexpr (std::same_as<T, float>)
      if (std::isfinite(real) && std::abs(real) > double{std::numeric_limits<float>::max()})
        return from.fail("a number out of the range of its type");
    value = static_cast<T>(real);
    return true;
  } else if constexpr (Textual<T>) {
    std::string_view text;
    if (!from.text(text)) return false;
    if constexpr (std::same_as<T, std::string>)
      if (!from.charge(text.size(), 1)) return false;
    value = T(text);
    return true;
  } else if constexpr (Binary<T>) {
    return read_binary(from, value);
  } else if constexpr (Optional<T>) {
    if (from.take_nil()) {
      value.reset();
      return true;
    }
    return read_value(from, value.emplace());
  } else if constexpr (Variant<T>) {
    return read_variant(from, value);
  } else if constexpr (Empty<T>) {
    return from.take_nil() || from.fail("expected nil, found " + std::string(name_of(from.peek())));
  } else if constexpr (Duration<T>) {
    typename T::rep count{};
    if (!read_value(from, count)) return false;
    value = T(count);
    return true;
  } else if constexpr (Map<T>) {
    return read_map(from, value);
  } else if constexpr (Sequence<T>) {
    return read_sequence(from, value);
  } else if constexpr (Tuple<T>) {
    return read_tuple(from, value, std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    static_assert(Record<T>, "this type has no form in MessagePack; specialise weir::rpc::Wire for it");
    return read_fields(from, value, std::make_index_sequence<field_count<T>>());
  }
}

// How values become a body: `write` appends to the body, `read` takes all of it. A codec may have `size`,
// too: how many bytes write() will append, at least about; then a large body is encoded straight into memory
// that it is sent from. One that takes a BodyPlace in place of Bytes may refer to parts of the value.
template <class C>
concept Codec = requires(Bytes& out, std::span<const std::byte> body, int& value) {
  C::write(out, value);
  { C::read(body, value) } -> std::same_as<Result<void>>;
  { C::number } -> std::convertible_to<std::uint8_t>;  // in the frame; from 128 on: an application's own
  { C::name } -> std::convertible_to<std::string_view>;
};

struct MessagePack {
  static constexpr std::uint8_t number = 0;
  static constexpr std::string_view name = "msgpack";
  template <class T>
  static void write(BodyPlace out, const T& value) {
    MsgpackWriter writer(out);
    write_value(writer, value);
  }
  template <class T>
  static BodySize size(const T& value) {
    MsgpackSizer sizer;
    write_value(sizer, value);
    return sizer.size();
  }
  template <class T>
  static Result<void> read(std::span<const std::byte> body, T& value) {
    DecodeRoom room;
    return read(body, value, room);
  }
  template <class T>
  static Result<void> read(std::span<const std::byte> body, T& value, DecodeRoom& room) {
    MsgpackReader reader(body, room.left);
    if (read_value(reader, value) && !reader.at_end()) reader.fail("bytes left over after the value");
    room.used += room.left - reader.room();
    room.left = reader.room();
    if (reader.failed())
      return fail(reader.too_large() ? Errc::too_large : Errc::bad_arguments, reader.why());
    return {};
  }
};
static_assert(Codec<MessagePack>);

// Bodies as they are: for programs without the types.
struct EncodedBody {
  static constexpr std::uint8_t number = 0;  // CallOptions::codec says
  static void write(BodyPlace out, std::span<const std::byte> body) { out.append_or_refer(body); }
  static BodySize size(std::span<const std::byte> body) { return BodySize::of_contents(body.size()); }
  static Result<void> read(std::span<const std::byte> body, std::vector<std::byte>& value) {
    value.assign(body.begin(), body.end());
    return {};
  }
};

// A codec that takes no DecodeRoom is bounded by its body alone.
template <class C, class T>
Result<void> read_body(std::span<const std::byte> body, T& value, DecodeRoom& room) {
  if constexpr (requires { C::read(body, value, room); })
    return C::read(body, value, room);
  else
    return C::read(body, value);
}

// 0 if the codec does not say.
template <class C, class T>
BodySize body_size(const T& value) {
  if constexpr (requires { C::size(value); })
    return C::size(value);
  else
    return 0;
}

}  // namespace weir::rpc
