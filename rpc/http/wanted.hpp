// What a request asks for, by its head alone: a call of a function, a page, or an answer that is known at
// once.
//
// Functions are called with POST /NAME. Pages are read with GET or HEAD; behind each is a function that every
// server has (weir.methods, weir.stats), so that whoever may not call that may not read the page either.
// /health is for load balancers, and needs no rights. Pure, but for this host's name.
#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rpc/http/answer.hpp"
#include "rpc/http/request_reader.hpp"
#include "rpc/http_options.hpp"
#include "rpc/trace_context.hpp"

namespace weir::rpc::http {

struct Page {
  std::string_view path;
  std::string_view function;
  std::string_view type;
  // The function's result as the page; the error is for the reader.
  std::expected<std::string, std::string> (*show)(std::span<const std::byte> result);
};

struct Surroundings {
  const HttpOptions& options;
  bool over_loopback = false;  // and without TLS, whose certificates have names
  bool draining = false;
};

struct Wanted {
  std::string function;
  const Page* page = nullptr;  // that is made of the function's result; null: the result itself
  std::string token;
  std::chrono::microseconds timeout{0};
  std::optional<TraceContext> trace;
};

// The origin that may read the answer in a browser; empty: the request names none.
std::string_view origin_of(const Head& head, const HttpOptions& options);

// Or the answer that needs no call.
std::expected<Wanted, Answer> wanted(const Head& head, const Surroundings& around);

}  // namespace weir::rpc::http
