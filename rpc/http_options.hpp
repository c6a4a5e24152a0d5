// How a server answers HTTP/1.1 on the ports where it serves its own protocol: ServerOptions::http.
//
//   options.http = weir::rpc::HttpOptions();
//   $ curl -d '[2, 3]' http://127.0.0.1:9000/shop.add
//
// docs/rpc.md has the rules, rpc/http/ the code.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::rpc {

struct HttpOptions {
  std::uint32_t max_head_bytes = 16 << 10;   // request line and fields
  std::uint32_t max_body_bytes = 256 << 10;  // JSON; while it is read it takes up to 85 times its size
  std::uint32_t max_reply_bytes = 4 << 20;   // of a result, before it becomes JSON
  // Of a request without the field weir-timeout.
  std::chrono::milliseconds timeout{30'000};
  // Pages that may call from a browser, as "https://shop.example". Other requests with the field Origin are
  // refused: a page that somebody visits must not call what only his host can reach.
  std::vector<std::string> origins;
  // Names besides this host's own by which clients on this host may call, such as a proxy that passes on the
  // name it was called by. Against pages whose name leads to 127.0.0.1 (DNS rebinding).
  std::vector<std::string> hosts;
};

}  // namespace weir::rpc
