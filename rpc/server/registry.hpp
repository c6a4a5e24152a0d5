// The functions of a server: from a method's number to code that decodes, calls and encodes.
//
// Templates make a row for each function; all that runs them is in server_connection.cpp. Functions are added
// before the server listens; then the table is only read.
#pragma once

#include <stdexcept>
#include <unordered_map>

#include "rpc/codec/growing.hpp"
#include "rpc/codec/method_schema.hpp"
#include "rpc/context.hpp"
#include "rpc/interceptor.hpp"
#include "rpc/server/blocking_threads.hpp"
#include "rpc/stream.hpp"

namespace weir::rpc {

// Where a result is encoded; begin() takes its expected size. From begin() to the following end() or
// drop(), nothing may be awaited, because the place is the connection's own queue. What the body refers to
// must still exist at end().
class ReplyBody {
 public:
  virtual BodyPlace begin(BodySize expected) = 0;
  virtual Result<void> end() = 0;
  virtual void drop() = 0;

 protected:
  ~ReplyBody() = default;
};

template <class C, class T>
Result<void> write_result(const T& value, ReplyBody& reply) {
  const BodyPlace body = reply.begin(body_size<C>(value));
  try {
    C::write(body, value);
  } catch (...) {
    reply.drop();
    throw;
  }
  return reply.end();
}

struct Registered {
  std::string name;
  MethodSchema schema;  // "(str, i32) -> str"
  void* object = nullptr;
  bool streams = false;  // it has a Reader or a Writer
  std::uint8_t codec = MessagePack::number;
  std::string_view codec_name = MessagePack::name;
  // One of the two: a plain function runs while its request is handled, a coroutine on its own. Body, context
  // and reply stay until either returned. An exception of the function's passes through.
  Result<void> (*now)(void* object, Context&, std::span<const std::byte> body, ReplyBody& reply) = nullptr;
  asio::awaitable<Result<void>> (*later)(void* object, Context&, std::span<const std::byte> body,
                                         ReplyBody& reply) = nullptr;
};

namespace invoke {

// The parameter of type P: the context, or the next argument that travelled.
template <class P, std::size_t At, class Arguments>
decltype(auto) parameter(Arguments& arguments, Context& context) {
  if constexpr (std::is_same_v<P, Context&>)
    return (context);
  else if constexpr (is_stream_end<P>)
    return P(context.stream());
  else
    return static_cast<std::remove_cvref_t<P>&&>(std::get<At>(arguments));
}

// Index, among the arguments that travel, of parameter I of A...
template <std::size_t I, class... A>
constexpr std::size_t travelling_before() {
  constexpr bool stays[] = {!travels<A>..., false};
  std::size_t count = 0;
  for (std::size_t i = 0; i < I; ++i) count += stays[i] ? 0 : 1;
  return count;
}

template <auto F>
struct Caller;
template <auto F, class R, class... A, std::size_t... I>
R call_free(std::index_sequence<I...>, auto& arguments, Context& context) {
  return F(parameter<A, travelling_before<I, A...>()>(arguments, context)...);
}
template <auto F, class R, class C, class... A, std::size_t... I>
R call_member(std::index_sequence<I...>, void* object, auto& arguments, Context& context) {
  return (static_cast<C*>(object)->*F)(parameter<A, travelling_before<I, A...>()>(arguments, context)...);
}

template <auto F, class R, class... A>
R call(R (*)(A...), void*, ArgumentsOf<F>& arguments, Context& context) {
  return call_free<F, R, A...>(std::index_sequence_for<A...>(), arguments, context);
}
template <auto F, class R, class... A>
R call(R (*)(A...) noexcept, void*, ArgumentsOf<F>& arguments, Context& context) {
  return call_free<F, R, A...>(std::index_sequence_for<A...>(), arguments, context);
}
template <auto F, class R, class C, class... A>
R call(R (C::*)(A...), void* object, ArgumentsOf<F>& arguments, Context& context) {
  return call_member<F, R, C, A...>(std::index_sequence_for<A...>(), object, arguments, context);
}
template <auto F, class R, class C, class... A>
R call(R (C::*)(A...) const, void* object, ArgumentsOf<F>& arguments, Context& context) {
  return call_member<F, R, const C, A...>(std::index_sequence_for<A...>(), object, arguments, context);
}
template <auto F, class R, class C, class... A>
R call(R (C::*)(A...) noexcept, void* object, ArgumentsOf<F>& arguments, Context& context) {
  return call_member<F, R, C, A...>(std::index_sequence_for<A...>(), object, arguments, context);
}
template <auto F, class R, class C, class... A>
R call(R (C::*)(A...) const noexcept, void* object, ArgumentsOf<F>& arguments, Context& context) {
  return call_member<F, R, const C, A...>(std::index_sequence_for<A...>(), object, arguments, context);
}

template <class C, class R>
Result<void> encode_result(R& result, ReplyBody& reply) {
  if constexpr (is_result<R>) {
    if (!result) return std::unexpected(std::move(result.error()));
    if constexpr (std::is_void_v<typename R::value_type>)
      return write_result<C>(std::monostate(), reply);
    else
      return write_result<C>(*result, reply);
  } else {
    return write_result<C>(result, reply);
  }
}

// The arguments of F from a body; those that it lacks are F's defaults.
template <auto F, class C>
Result<void> read_arguments(std::span<const std::byte> body, ArgumentsOf<F>& arguments, DecodeRoom& room) {
  if constexpr (default_count<F> == 0) {
    return read_body<C>(body, arguments, room);
  } else {
    static_assert(std::is_same_v<C, MessagePack>, "only functions in MessagePack have defaults");
    constexpr std::size_t required = required_arguments<F>;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((std::get<required + I>(arguments) =
            std::tuple_element_t<required + I, ArgumentsOf<F>>(std::get<I>(defaults<F>))),
       ...);
    }(std::make_index_sequence<default_count<F>>());
    Growing<ArgumentsOf<F>, required> growing{arguments};
    return read_body<C>(body, growing, room);
  }
}

template <auto F>
Result<void> now(void* object, Context& context, std::span<const std::byte> body, ReplyBody& reply) {
  using C = typename CodecOf<F>::type;
  ArgumentsOf<F> arguments;
  if (Result<void> read = read_arguments<F, C>(body, arguments, context.decoding()); !read) return read;
  if constexpr (std::is_void_v<decltype(call<F>(F, object, arguments, context))>) {
    call<F>(F, object, arguments, context);
    return write_result<C>(std::monostate(), reply);
  } else {
    auto result = call<F>(F, object, arguments, context);
    return encode_result<C>(result, reply);
  }
}

template <auto F>
asio::awaitable<Result<void>> later(void* object, Context& context, std::span<const std::byte> body,
                                    ReplyBody& reply) {
  using C = typename CodecOf<F>::type;
  ArgumentsOf<F> arguments;
  if (Result<void> read = read_arguments<F, C>(body, arguments, context.decoding()); !read) co_return read;
  context.arguments_read();
  auto running = call<F>(F, object, arguments, context);
  if constexpr (std::is_void_v<typename decltype(running)::value_type>) {
    co_await std::move(running);
    co_return write_result<C>(std::monostate(), reply);
  } else {
    auto result = co_await std::move(running);
    co_return encode_result<C>(result, reply);
  }
}

// Needs only the arguments, which stay valid meanwhile: the coroutine ends after its work has ended.
template <auto F>
asio::awaitable<Result<void>> in_thread(void* object, Context& context, std::span<const std::byte> body,
                                        ReplyBody& reply) {
  using C = typename CodecOf<F>::type;
  ArgumentsOf<F> arguments;
  if (Result<void> read = read_arguments<F, C>(body, arguments, context.decoding()); !read) co_return read;
  context.arguments_read();
  auto work = [&] { return call<F>(F, object, arguments, context); };
  auto result = co_await context.blocking_threads().run(work);
  if (!result) co_return std::unexpected(std::move(result.error()));
  if constexpr (std::is_void_v<typename decltype(result)::value_type>)
    co_return write_result<C>(std::monostate(), reply);
  else
    co_return encode_result<C>(*result, reply);
}

}  // namespace invoke

template <auto F>
Registered registered(void* object) {
  Registered row;
  row.name = method_name<F>;
  row.object = object;
  row.schema = schema_of<F>();
  row.codec = CodecOf<F>::type::number;
  row.codec_name = CodecOf<F>::type::name;
  row.streams = Method<F>::streams;
  static_assert(
      !blocking<F> || (!Method<F>::coroutine && !Method<F>::with_context),
      "a function that blocks runs in a thread of its own: it is no coroutine, and takes no Context");
  if constexpr (blocking<F>)
    row.later = invoke::in_thread<F>;
  else if constexpr (Method<F>::coroutine)
    row.later = invoke::later<F>;
  else
    row.now = invoke::now<F>;
  return row;
}

class Registry {
 public:
  // A second function with the same number is a mistake of the program: throws std::logic_error.
  void add(const Registered& row);
  // The function `of` under one more name. Throws std::logic_error if there is none, or if the name is taken.
  void alias(std::string_view name, std::string_view of);
  const Registered* find(std::uint64_t method) const {
    const auto found = rows_.find(method);
    return found == rows_.end() ? nullptr : &found->second;
  }
  std::vector<const Registered*> by_name() const;

 private:
  std::unordered_map<std::uint64_t, Registered> rows_;
};

}  // namespace weir::rpc
