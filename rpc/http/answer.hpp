// What the gateway answers: a status and a body, as the text of an HTTP/1.1 response. Pure.
#pragma once

#include <string>
#include <string_view>

#include "rpc/error.hpp"
#include "rpc/http/request_reader.hpp"

namespace weir::rpc::http {

inline constexpr std::string_view json_type = "application/json";
inline constexpr std::string_view metrics_type = "text/plain; version=0.0.4; charset=utf-8";

struct Answer {
  unsigned status = 200;
  std::string body;
  std::string_view type = json_type;
  std::string_view allow = {};  // which methods there are, where the request's is not among them
};

// The status for each cause that a call may end with.
unsigned status_of(Errc code);
// {"error":"failed","message":"...","details":{"type":"shop.Refusal","value":0}}, details where there are
// any.
Answer answer_of(const Error& error);
Answer answer_of(const Fault& fault);

struct ResponseTerms {
  bool closes = false;           // the connection, after this response
  bool without_body = false;     // of HEAD
  std::string_view origin = {};  // that may read it in a browser; empty: none
};
std::string response(const Answer& answer, const ResponseTerms& terms);

}  // namespace weir::rpc::http
