#include "rpc/http/wanted.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "rpc/codec/codec.hpp"
#include "rpc/json/json_body.hpp"
#include "rpc/json/stats_json.hpp"
#include "rpc/method_stats.hpp"
#include "rpc/server/reflection.hpp"
#include "transport/own_host.hpp"

namespace weir::rpc::http {

namespace {

constexpr std::string_view methods = "GET, HEAD, POST, OPTIONS";
constexpr double longest_s = 3600;

// ---- pages

using Shown = std::expected<std::string, std::string>;

Shown show_methods(std::span<const std::byte> result) {
  return json::json_from_body(result, "() -> [MethodInfo{name: str, schema: str, codec: str}]",
                              json::BodyOf::result);
}

template <class Show>
Shown show_reports(std::span<const std::byte> result, Show show) {
  std::vector<MethodReport> reports;
  if (const Result<void> read = MessagePack::read(result, reports); !read)
    return std::unexpected(read.error().what);
  return show(reports);
}
Shown show_calls(std::span<const std::byte> result) {
  return show_reports(result,
                      [](const auto& all) { return json::stats_as_json(all, json::Layout::for_people); });
}
Shown show_metrics(std::span<const std::byte> result) { return show_reports(result, prometheus_text); }

constexpr Page pages[] = {{"/", methods_method, json_type, show_methods},
                          {"/calls", stats_method, json_type, show_calls},
                          {"/metrics", stats_method, metrics_type, show_metrics}};

// ---- what is refused

using Refusal = std::optional<Answer>;

Refusal refuse(unsigned status, std::string why) { return answer_of(Fault{status, std::move(why)}); }

bool is_one_of(const std::vector<std::string>& known, std::string_view one) {
  return std::ranges::find(known, one) != known.end();
}

bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

Refusal host(const Head& head, const Surroundings& around) {
  const auto& named = head[Field::host];
  if (!named && !head.version_1_0) return refuse(400, "a request names its host");
  if (!named || !around.over_loopback || transport::names_this_host(*named)) return std::nullopt;
  if (is_one_of(around.options.hosts, named->substr(0, named->rfind(':')))) return std::nullopt;
  return refuse(421,
                "over loopback, Host must be an address, localhost, the name of this host, or one of "
                "HttpOptions::hosts");
}
Refusal origin(const Head& head, const Surroundings& around) {
  const auto& from = head[Field::origin];
  if (!from || is_one_of(around.options.origins, *from)) return std::nullopt;
  return refuse(403, "pages of this origin may not call: it is not among HttpOptions::origins");
}
Refusal expectation(const Head& head, const Surroundings&) {
  const auto& expects = head[Field::expect];
  if (!expects || same(*expects, "100-continue")) return std::nullopt;
  return refuse(417, "the only expectation known here is 100-continue");
}
Refusal coding(const Head& head, const Surroundings&) {
  const auto& packed = head[Field::content_encoding];
  if (!packed || same(*packed, "identity")) return std::nullopt;
  return refuse(415, "a body is JSON that is not compressed");
}

constexpr Refusal (*rules[])(const Head&, const Surroundings&) = {host, origin, expectation, coding};

// ---- the parts of a head

// Without the scheme and authority of the absolute form, and the query.
std::string_view path_of(std::string_view target) {
  if (const std::size_t scheme = target.find("://"); scheme != target.npos && !target.starts_with('/')) {
    const std::size_t begin = target.find('/', scheme + 3);
    target = begin == target.npos ? "/" : target.substr(begin);
  }
  return target.substr(0, target.find('?'));
}

std::optional<std::string> without_percents(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(&text[i + 1], &text[i + 1] + 2, value, 16);
    if (error != std::errc() || end != &text[i + 1] + 2) return std::nullopt;
    plain += static_cast<char>(value);
    i += 2;
  }
  return plain;
}

std::string token_of(const Head& head) {
  constexpr std::string_view scheme = "bearer ";
  const auto& shown = head[Field::authorization];
  if (!shown || !same(std::string_view(*shown).substr(0, scheme.size()), scheme)) return {};
  return shown->substr(std::min(shown->find_first_not_of(' ', scheme.size()), shown->size()));
}

std::optional<std::chrono::microseconds> timeout_of(const Head& head, const HttpOptions& options) {
  const auto& said = head[Field::weir_timeout];
  if (!said) return std::chrono::duration_cast<std::chrono::microseconds>(options.timeout);
  double seconds = 0;
  const auto [end, error] = std::from_chars(said->data(), said->data() + said->size(), seconds);
  const bool fits = seconds > 0 && seconds <= longest_s;  // and it is not a NaN
  if (error != std::errc() || end != said->data() + said->size() || !fits) return std::nullopt;
  return std::chrono::microseconds(std::max(1L, std::lround(seconds * 1e6)));
}

// ---- what is wanted

std::expected<Wanted, Answer> page(std::string_view path, const Surroundings& around) {
  if (path == "/health" && around.draining) {
    Answer answer{503, "{\"status\":\"draining\"}\n"};
    return std::unexpected(std::move(answer));
  }
  if (path == "/health") {
    Answer answer{200, "{\"status\":\"serving\"}\n"};
    return std::unexpected(std::move(answer));
  }
  const auto* const known = std::ranges::find(pages, path, &Page::path);
  if (known == std::end(pages)) {
    Answer answer =
        answer_of(Fault{405, "functions are called with POST; GET has /, /calls, /health and /metrics"});
    answer.allow = "POST, OPTIONS";
    return std::unexpected(std::move(answer));
  }
  Wanted of_page;
  of_page.function = known->function;
  of_page.page = known;
  return of_page;
}

std::expected<Wanted, Answer> by_method(const Head& head, const Surroundings& around) {
  const std::string_view path = path_of(head.target);
  if (head.method == "OPTIONS") {
    Answer answer{204, {}};
    answer.allow = methods;
    return std::unexpected(std::move(answer));
  }
  if (head.method == "GET" || head.method == "HEAD") return page(path, around);
  if (head.method != "POST") {
    Answer answer = answer_of(Fault{405, "functions are called with POST"});
    answer.allow = methods;
    return std::unexpected(std::move(answer));
  }
  auto name = without_percents(path.substr(std::min<std::size_t>(1, path.size())));
  if (!name || !path.starts_with('/'))
    return std::unexpected(answer_of(Fault{400, "the path is not /FUNCTION"}));
  Wanted call;
  call.function = std::move(*name);
  return call;
}

}  // namespace

std::string_view origin_of(const Head& head, const HttpOptions& options) {
  const auto& from = head[Field::origin];
  return from && is_one_of(options.origins, *from) ? std::string_view(*from) : std::string_view();
}

std::expected<Wanted, Answer> wanted(const Head& head, const Surroundings& around) {
  for (const auto rule : rules)
    if (auto refused = rule(head, around)) return std::unexpected(std::move(*refused));
  const auto timeout = timeout_of(head, around.options);
  if (!timeout)
    return std::unexpected(answer_of(Fault{400, "weir-timeout takes seconds above 0, and 3600 at most"}));
  auto found = by_method(head, around);
  if (!found) return found;
  found->token = token_of(head);
  found->timeout = *timeout;
  if (const auto& parent = head[Field::traceparent]) found->trace = parse_traceparent(*parent);
  return found;
}

}  // namespace weir::rpc::http
