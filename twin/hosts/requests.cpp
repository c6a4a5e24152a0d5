#include "twin/hosts/requests.hpp"

#include <charconv>

#include "twin/hosts/network_plan.hpp"

namespace weir::hosts {
namespace {

// The text before the next `end`, which is taken off `rest` with it.
std::string_view take(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view word = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return word;
}

template <typename Number>
bool read_number(std::string_view word, Number& number) {
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  return read.ec == std::errc{} && read.ptr == word.data() + word.size();
}

}  // namespace

std::optional<Request> read_request(std::string_view text) {
  if (text.size() > max_request_bytes) return std::nullopt;
  if (text == "list") return Request{Request::Kind::list, {}, {}};
  if (text == "cables") return Request{Request::Kind::cables, {}, {}};
  if (text == "end") return Request{Request::Kind::end, {}, {}};
  const std::string_view verb = take(text, ' ');
  if (verb == "join" && is_name(text)) return Request{Request::Kind::join, std::string(text), {}};
  if (verb == "variables" && is_name(text)) return Request{Request::Kind::variables, std::string(text), {}};
  const std::string host(take(text, ' '));
  if (verb != "plug" || !is_name(host)) return std::nullopt;
  std::string other;
  if (text.find(' ') != std::string_view::npos) {
    other = take(text, ' ');
    if (!is_name(other)) return std::nullopt;
  }
  if (text == "in") return Request{Request::Kind::plug_in, host, other};
  if (text == "out") return Request{Request::Kind::plug_out, host, other};
  return std::nullopt;
}

std::string text_of(const Request& request) {
  switch (request.kind) {
    case Request::Kind::join:
      return "join " + request.host;
    case Request::Kind::variables:
      return "variables " + request.host;
    case Request::Kind::list:
      return "list";
    case Request::Kind::cables:
      return "cables";
    case Request::Kind::plug_in:
    case Request::Kind::plug_out:
      return "plug " + request.host + (request.other.empty() ? "" : " " + request.other) +
             (request.kind == Request::Kind::plug_in ? " in" : " out");
    case Request::Kind::end:
      return "end";
  }
  return {};
}

std::optional<Listing> read_listing(std::string_view text) {
  Listing listing;
  listing.title = take(text, '\n');
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    ListedHost host;
    host.name = take(line, ' ');
    const std::string_view address = take(line, ' '), state = take(line, ' '), inode = take(line, ' ');
    if (!is_name(host.name) || !read_number(address, host.ipv4) || (state != "in" && state != "out") ||
        !read_number(inode, host.network_inode))
      return std::nullopt;
    for (auto* const number : {&host.sent.packets, &host.sent.bytes, &host.received.packets})
      if (!read_number(take(line, ' '), *number)) return std::nullopt;
    if (!read_number(line, host.received.bytes)) return std::nullopt;
    host.plugged_in = state == "in";
    listing.hosts.push_back(std::move(host));
  }
  return listing;
}

std::string text_of(const Listing& listing) {
  std::string text = listing.title + "\n";
  for (const ListedHost& host : listing.hosts) {
    text += host.name + " " + std::to_string(host.ipv4) + (host.plugged_in ? " in" : " out");
    for (const std::uint64_t number :
         {host.network_inode, host.sent.packets, host.sent.bytes, host.received.packets, host.received.bytes})
      text += " " + std::to_string(number);
    text += "\n";
  }
  return text;
}

std::optional<std::vector<ListedCable>> read_cables(std::string_view text) {
  std::vector<ListedCable> cables;
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    ListedCable cable;
    cable.a = take(line, ' ');
    cable.b = take(line, ' ');
    const std::string_view state = take(line, ' ');
    if (!is_name(cable.a) || !is_name(cable.b) || (state != "in" && state != "out")) return std::nullopt;
    for (auto* const number : {&cable.sent.packets, &cable.sent.bytes, &cable.received.packets})
      if (!read_number(take(line, ' '), *number)) return std::nullopt;
    if (!read_number(line, cable.received.bytes)) return std::nullopt;
    cable.plugged_in = state == "in";
    cables.push_back(std::move(cable));
  }
  return cables;
}

std::string text_of(const std::vector<ListedCable>& cables) {
  std::string text;
  for (const ListedCable& cable : cables) {
    text += cable.a + " " + cable.b + (cable.plugged_in ? " in" : " out");
    for (const std::uint64_t number :
         {cable.sent.packets, cable.sent.bytes, cable.received.packets, cable.received.bytes})
      text += " " + std::to_string(number);
    text += "\n";
  }
  return text;
}

std::optional<Variables> read_variables(std::string_view text) {
  Variables variables;
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
    variables.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return variables;
}

std::string text_of(const Variables& variables, std::string_view host) {
  constexpr std::string_view place = "{host}";
  std::string text;
  for (const auto& [name, value] : variables) {
    text += name + "=";
    std::string_view rest = value;
    for (std::size_t at = 0; (at = rest.find(place)) != std::string_view::npos;) {
      text.append(rest.substr(0, at)).append(host);
      rest.remove_prefix(at + place.size());
    }
    text.append(rest).append("\n");
  }
  return text;
}

}  // namespace weir::hosts
