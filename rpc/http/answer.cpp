#include "rpc/http/answer.hpp"

#include <algorithm>

#include "rpc/error_details.hpp"
#include "rpc/json/json_body.hpp"
#include "rpc/json/json_values.hpp"

namespace weir::rpc::http {

namespace {

using json::Json;

struct Status {
  unsigned number;
  std::string_view reason;
};
constexpr Status reasons[] = {{200, "OK"},
                              {204, "No Content"},
                              {400, "Bad Request"},
                              {401, "Unauthorized"},
                              {403, "Forbidden"},
                              {404, "Not Found"},
                              {405, "Method Not Allowed"},
                              {408, "Request Timeout"},
                              {413, "Content Too Large"},
                              {415, "Unsupported Media Type"},
                              {417, "Expectation Failed"},
                              {421, "Misdirected Request"},
                              {431, "Request Header Fields Too Large"},
                              {499, "Client Closed Request"},
                              {500, "Internal Server Error"},
                              {501, "Not Implemented"},
                              {503, "Service Unavailable"},
                              {504, "Gateway Timeout"},
                              {505, "HTTP Version Not Supported"}};

struct Row {
  Errc code;
  unsigned status;
};
constexpr Row statuses[] = {
    {Errc::unknown_method, 404},    {Errc::bad_arguments, 400},  {Errc::too_large, 413},
    {Errc::deadline_exceeded, 504}, {Errc::cancelled, 499},      {Errc::overloaded, 503},
    {Errc::draining, 503},          {Errc::denied, 403},         {Errc::wrong_codec, 415},
    {Errc::unauthenticated, 401},   {Errc::schema_mismatch, 400}};

std::string shown(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string_view reason_of(unsigned status) {
  const auto* const row = std::ranges::find(reasons, status, &Status::number);
  return row == std::end(reasons) ? "" : row->reason;
}

}  // namespace

unsigned status_of(Errc code) {
  const auto* const row = std::ranges::find(statuses, code, &Row::code);
  return row == std::end(statuses) ? 500 : row->status;
}

Answer answer_of(const Error& error) {
  Json body{{"error", name_of(error.code)}, {"message", error.what}};
  if (error.details != nullptr) {
    const auto value = json::json_from_body(error.details->body, "", json::BodyOf::item);
    body["details"] = {{"type", error.details->type}, {"value", value ? Json::parse(*value) : Json()}};
  }
  Answer answer{status_of(error.code), shown(body)};
  return answer;
}

Answer answer_of(const Fault& fault) {
  Answer answer{fault.status, shown({{"error", "http"}, {"message", fault.why}})};
  return answer;
}

std::string response(const Answer& answer, const ResponseTerms& terms) {
  std::string head("HTTP/1.1 ");
  head.append(std::to_string(answer.status)).append(" ").append(reason_of(answer.status)).append("\r\n");
  const auto field = [&head](std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
  };
  if (answer.status != 204) {
    field("Content-Type", answer.type);
    field("Content-Length", std::to_string(answer.body.size()));
    field("X-Content-Type-Options", "nosniff");
    field("Cache-Control", "no-store");
  }
  if (!answer.allow.empty()) field("Allow", answer.allow);
  if (answer.status == 401) field("WWW-Authenticate", "Bearer");
  if (answer.status == 503) field("Retry-After", "1");
  if (!terms.origin.empty()) {
    field("Access-Control-Allow-Origin", terms.origin);
    field("Vary", "Origin");
  }
  if (!terms.origin.empty() && answer.status == 204) {
    field("Access-Control-Allow-Methods", answer.allow);
    field("Access-Control-Allow-Headers", "Authorization, Content-Type, Traceparent, Weir-Timeout");
    field("Access-Control-Max-Age", "600");
  }
  if (terms.closes) field("Connection", "close");
  head.append("\r\n");
  if (!terms.without_body) head.append(answer.body);
  return head;
}

}  // namespace weir::rpc::http
