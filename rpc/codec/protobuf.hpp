// Protobuf messages as arguments and results: a function that takes one message and returns one is called in
// Protobuf's encoding, without anything to declare. Include it before the function's first call or add().
//
//   shop::Receipt place(const shop::Order& order, rpc::Context&);
//
// The body of a request is the message, that of a reply the result; void and no argument are an empty body.
// Schemas show the messages' full names. Needs libprotobuf; link weir_rpc_protobuf.
#pragma once

#include <google/protobuf/message_lite.h>

#include <concepts>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <variant>

#include "rpc/codec/codec.hpp"
#include "rpc/codec/method.hpp"

namespace weir::rpc {

template <class T>
concept ProtobufMessage = std::derived_from<T, google::protobuf::MessageLite>;

struct Protobuf {
  static constexpr std::uint8_t number = 1;
  static constexpr std::string_view name = "protobuf";

  template <ProtobufMessage M>
  static void write(Bytes& out, const M& message) {
    const std::size_t size = message.ByteSizeLong();
    if (size > std::numeric_limits<int>::max())
      throw std::length_error("a Protobuf message of more than 2 GiB cannot be sent");
    message.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(out.grow(size)));
  }
  template <ProtobufMessage M>
  static std::size_t size(const M& message) {
    return message.ByteSizeLong();
  }
  template <class M>
  static std::size_t size(const std::tuple<M>& arguments) {
    return size(std::get<0>(arguments));
  }
  template <class M>
  static void write(Bytes& out, const std::tuple<M>& arguments) {
    write(out, std::get<0>(arguments));
  }
  static void write(Bytes&, std::tuple<>) {}
  static void write(Bytes&, std::monostate) {}

  template <ProtobufMessage M>
  static Result<void> read(std::span<const std::byte> body, M& message) {
    if (body.size() > std::numeric_limits<int>::max() ||
        !message.ParseFromArray(body.data(), static_cast<int>(body.size())))
      return fail(Errc::bad_arguments, "not a message of type " + message.GetTypeName());
    return {};
  }
  template <ProtobufMessage M>
  static Result<void> read(std::span<const std::byte> body, std::tuple<M>& arguments) {
    return read(body, std::get<0>(arguments));
  }
  static Result<void> read(std::span<const std::byte> body, std::tuple<>&) { return nothing(body); }
  static Result<void> read(std::span<const std::byte> body, std::monostate&) { return nothing(body); }

  template <class Arguments, class R>
  static std::string schema() {
    std::string text = "(";
    if constexpr (std::tuple_size_v<Arguments> > 0)
      text += std::tuple_element_t<0, Arguments>().GetTypeName();
    text += ") -> ";
    if constexpr (ProtobufMessage<R>)
      text += R().GetTypeName();
    else
      text += "nil";
    return text;
  }

 private:
  static Result<void> nothing(std::span<const std::byte> body) {
    if (body.empty()) return {};
    return fail(Errc::bad_arguments, "expected nothing, found " + std::to_string(body.size()) + " bytes");
  }
};

// One message or none as argument, a message or nothing as result, and at least one of them.
template <class Arguments, class R>
constexpr bool in_protobuf = false;
template <class R>
constexpr bool in_protobuf<std::tuple<>, R> = ProtobufMessage<R>;
template <class M, class R>
constexpr bool in_protobuf<std::tuple<M>, R> =
    ProtobufMessage<M> && (ProtobufMessage<R> || std::is_void_v<R>);

template <auto F>
  requires in_protobuf<ArgumentsOf<F>, ResultOf<F>>
struct CodecOf<F> {
  using type = Protobuf;
};

}  // namespace weir::rpc
