// What is asked of a keeper, and how it answers: one message each way on a connection, as text.
//
//   join h3          -> "ok" and the namespaces of h3 as descriptors
//   variables h3     -> "ok" and NAME=VALUE for each variable of its programs, a line each
//   list             -> "ok" and a line for each host
//   plug h3 in|out   -> "ok"
//   end              -> "ok"; the network is gone when the connection is closed
// or "no " and why not. Pure; parsing takes any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::hosts {

struct Request {
  enum class Kind { join, variables, list, plug_in, plug_out, end };
  Kind kind = Kind::list;
  std::string host;
};
inline constexpr std::size_t max_request_bytes = 128;

std::optional<Request> read_request(std::string_view text);
std::string text_of(const Request& request);

struct Traffic {
  std::uint64_t packets = 0, bytes = 0;  // several packets that the kernel moves in one piece count once
  bool operator==(const Traffic&) const = default;
};

// A host as `list` shows it.
struct ListedHost {
  std::string name;
  std::uint32_t ipv4 = 0;
  bool plugged_in = true;
  std::uint64_t network_inode = 0;  // of /proc/PID/ns/net of its processes
  Traffic sent, received;           // by its interface since the network was made
  bool operator==(const ListedHost&) const = default;
};
struct Listing {
  std::string title;  // without a newline
  std::vector<ListedHost> hosts;
  bool operator==(const Listing&) const = default;
};
std::optional<Listing> read_listing(std::string_view text);
std::string text_of(const Listing& listing);

using Variables = std::vector<std::pair<std::string, std::string>>;
std::optional<Variables> read_variables(std::string_view text);
// "{host}" in a value becomes `host`.
std::string text_of(const Variables& variables, std::string_view host);

}  // namespace weir::hosts
