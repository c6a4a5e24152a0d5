#include "rpc/http/request_reader.hpp"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <utility>

namespace weir::rpc::http {

namespace {

namespace beast = boost::beast;
using Errors = beast::http::error;

constexpr std::pair<std::string_view, Field> fields[] = {{"host", Field::host},
                                                         {"origin", Field::origin},
                                                         {"authorization", Field::authorization},
                                                         {"traceparent", Field::traceparent},
                                                         {"expect", Field::expect},
                                                         {"content-encoding", Field::content_encoding},
                                                         {"transfer-encoding", Field::transfer_encoding},
                                                         {"weir-timeout", Field::weir_timeout}};
static_assert(std::size(fields) == static_cast<std::size_t>(Field::last) + 1);

// The last chunk, "0\r\n\r\n": Beast's parser takes it for granted that it is called with as much, once it
// has seen the beginning of one. At least so much is to come in any case.
constexpr std::size_t shortest_end = 5;

std::string text(beast::string_view of) { return {of.data(), of.size()}; }

Fault fault_of(const beast::error_code& error, const RequestReader::Limits& limits) {
  if (error == Errors::header_limit)
    return {431, "the head of a request may have " + std::to_string(limits.head_bytes) + " bytes"};
  if (error == Errors::body_limit)
    return {413, "the body of a request may have " + std::to_string(limits.body_bytes) + " bytes"};
  if (error == Errors::bad_version) return {505, "HTTP/1.1 is spoken here"};
  return {400, "this is no HTTP/1.1 request: " + error.message()};
}

}  // namespace

class RequestReader::Parser final : public beast::http::basic_parser<true> {
 public:
  explicit Parser(RequestReader& owner) : owner_(owner) {
    header_limit(owner.limits_.head_bytes);
    body_limit(owner.limits_.body_bytes);
  }

 private:
  using Error = beast::error_code;

  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       Error&) override {
    owner_.head_.method = text(method);
    owner_.head_.target = text(target);
    owner_.head_.version_1_0 = version == 10;
  }
  void on_response_impl(int, beast::string_view, int, Error&) override {}
  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     Error& error) override {
    if (is_header_done()) return;  // a trailer
    for (const auto& [known, field] : fields) {
      if (!beast::iequals(name, {known.data(), known.size()})) continue;
      auto& place = owner_.head_[field];
      if (place) {
        twice_ = known;
        error = Errors::bad_field;
        return;
      }
      place = text(value);
    }
  }
  void on_header_impl(Error&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Error&) override {}
  std::size_t on_body_impl(beast::string_view part, Error&) override {
    owner_.body_.append(part.data(), part.size());
    return part.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, Error&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view part, Error& error) override {
    return on_body_impl(part, error);
  }
  void on_finish_impl(Error&) override {}

  RequestReader& owner_;

 public:
  std::string_view twice_;
};

RequestReader::RequestReader(const Limits& limits) : limits_(limits) { next(); }
RequestReader::~RequestReader() = default;

void RequestReader::next() {
  state_ = State::head;
  head_ = Head();
  body_ = std::string();
  looked_at_ = 0;
  parser_ = std::make_unique<Parser>(*this);
}

void RequestReader::refuse(unsigned status, std::string why) {
  state_ = State::broken;
  fault_ = {status, std::move(why)};
}

// Bytes of the head that begins `bytes`; 0 if its end is not among them. The parser gets all of a head and
// nothing behind it: it would judge a part, or a head that ends in its first line, by what else is there.
std::size_t RequestReader::head_bytes(std::string_view bytes) {
  constexpr std::string_view end = "\r\n\r\n";
  const std::size_t at = bytes.find(end, looked_at_);
  looked_at_ = bytes.size() - std::min(bytes.size(), end.size() - 1);
  return at == bytes.npos ? 0 : at + end.size();
}

std::size_t RequestReader::take_head(std::string_view bytes) {
  const std::size_t size = head_bytes(bytes);
  if (size > limits_.head_bytes || (size == 0 && bytes.size() >= limits_.head_bytes))
    return refuse(431, "the head of a request may have " + std::to_string(limits_.head_bytes) + " bytes"), 0;
  if (size == 0) return 0;
  const std::size_t taken = parse(bytes.substr(0, size));
  if (state_ == State::broken) return 0;
  const auto& coding = head_[Field::transfer_encoding];
  if (coding && !beast::iequals({coding->data(), coding->size()}, "chunked"))
    return refuse(501, "the only transfer coding here is chunked"), 0;
  if (!parser_->is_header_done()) return refuse(400, "this is no HTTP/1.1 request: it ends in its head"), 0;
  head_.keep_alive = parser_->keep_alive() && !head_.version_1_0;
  head_.has_body = !parser_->is_done();
  state_ = State::body;
  return taken;
}

std::size_t RequestReader::parse(std::string_view bytes) {
  beast::error_code error;
  const std::size_t taken = parser_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
  if (!parser_->twice_.empty())
    return refuse(400, "the field " + std::string(parser_->twice_) + " comes twice"), 0;
  if (error && error != Errors::need_more) {
    const Fault why = fault_of(error, limits_);
    return refuse(why.status, why.why), 0;
  }
  return taken;
}

std::size_t RequestReader::take(std::string_view bytes) {
  if (state_ == State::whole || state_ == State::broken || bytes.empty()) return 0;
  if (state_ == State::body && parser_->chunked() && bytes.size() < shortest_end &&
      (bytes[0] == '0' || bytes[0] == '\r'))
    return 0;
  const std::size_t taken = state_ == State::head ? take_head(bytes) : parse(bytes);
  if (state_ != State::body) return taken;
  // Of a chunk header, or a trailer, whose end does not come.
  if (taken == 0 && bytes.size() >= limits_.head_bytes)
    return refuse(431, "more than " + std::to_string(limits_.head_bytes) + " bytes without an end of line"),
           0;
  if (parser_->is_done()) state_ = State::whole;
  return taken;
}

}  // namespace weir::rpc::http
