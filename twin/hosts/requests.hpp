// What is asked of a keeper, and how it answers: one message each way on a connection, as text.
//
//   join h3          -> "ok" and the namespaces of h3 as descriptors
//   variables h3     -> "ok" and NAME=VALUE for each variable of its programs, a line each
//   list             -> "ok" and a line for each host
//   cables           -> "ok" and a line for each cable between switches
//   plug h3 in|out   -> "ok"
//   plug s1 s2 in|out   -> "ok"; the cable between those two
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
  enum class Kind { join, variables, list, cables, plug_in, plug_out, end };
  Kind kind = Kind::list;
  std::string host;   // or a switch
  std::string other;  // the node at the cable's other end; empty: the only one
};
inline constexpr std::size_t max_request_bytes = 160;

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
struct ListedCable {
  std::string a, b;  // switches
  bool plugged_in = true;
  Traffic sent, received;  // by a
  bool operator==(const ListedCable&) const = default;
};
std::optional<std::vector<ListedCable>> read_cables(std::string_view text);
std::string text_of(const std::vector<ListedCable>& cables);

struct Listing {
  std::string title;  // without a newline
  std::vector<ListedHost> hosts;
  std::vector<ListedCable> cables{};  // between switches; not in the text
  bool operator==(const Listing&) const = default;
};
std::optional<Listing> read_listing(std::string_view text);
std::string text_of(const Listing& listing);

using Variables = std::vector<std::pair<std::string, std::string>>;
std::optional<Variables> read_variables(std::string_view text);
// "{host}" in a value becomes `host`.
std::string text_of(const Variables& variables, std::string_view host);

}  // namespace weir::hosts
