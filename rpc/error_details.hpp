// What a failure has to tell a program, besides its cause and a sentence: a value of a type of the
// application's, an enum or an aggregate say, that the server gives and the caller asks for.
//
//   enum class Refusal { sold_out, not_for_sale };            // shared by both ends
//   return rpc::fail(rpc::Errc::failed, "no bolts are left", Refusal::sold_out);
//
//   if (const auto why = rpc::details_of<Refusal>(result.error())) ...
//
// The value travels as MessagePack, with the name of its type, by which the caller knows what it is:
// "shop.Refusal", or what details_name says. It goes only to a caller whose hello knows details (hello.hpp);
// another one gets cause and sentence. Threading: any.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/codec/codec.hpp"
#include "rpc/error.hpp"

namespace weir::rpc {

// What is more stays at the server, whose sentence says so.
inline constexpr std::size_t max_details_bytes = 16 << 10;

struct ErrorDetails {
  std::string type;             // its name
  std::vector<std::byte> body;  // MessagePack
};

// A name that stays when the type is renamed, for both ends:
//   template <> inline constexpr std::string_view weir::rpc::details_name<shop::Refusal> = "shop.Refusal";
template <class T>
inline constexpr std::string_view details_name{};

// "shop::Refusal" as "shop.Refusal"; unnamed namespaces leave no trace.
std::string dotted_name(std::string_view spelt);

template <class T>
std::string name_of_details() {
  return details_name<T>.empty() ? dotted_name(qualified_type_name<T>()) : std::string(details_name<T>);
}

template <class T>
std::unexpected<Error> fail(Errc code, std::string what, const T& details) {
  Bytes body;
  MessagePack::write(body, details);
  auto made = std::make_shared<ErrorDetails>();
  made->type = name_of_details<T>();
  made->body.assign(body.span().begin(), body.span().end());
  return std::unexpected(Error{code, std::move(what), std::move(made)});
}

// Nothing: the failure has none, or of another type.
template <class T>
std::optional<T> details_of(const Error& error) {
  if (error.details == nullptr || error.details->type != name_of_details<T>()) return std::nullopt;
  std::optional<T> value(std::in_place);
  if (!MessagePack::read(error.details->body, *value)) value.reset();
  return value;
}

// The body of a reply that is FrameFlag::detailed.
struct DetailedFailure {
  std::string_view what;
  std::string_view type;
  std::span<const std::byte> body;
};

}  // namespace weir::rpc
