// The victims and bystanders of one server: one coroutine each, all in one io_context, on every transport.
//
// A bystander only pings the server, or reads a text from an honest node behind a gateway, a moment after the
// previous answer: over a connection that it keeps, and over a new one each time. A slow newcomer needs
// several times as long for its TLS handshake. A waiting client asks weir-server for what takes a certain
// time. A victim writes texts that contain their key and number, and reads them back. A client that loses its
// connection is counted, and connects again.
#pragma once

#include <string>
#include <vector>

#include "tests/bystander/honest_client.hpp"
#include "tests/bystander/watch.hpp"

namespace weir::bystander {

// What victims saw, and which connections bystanders lost.
struct Harm {
  std::uint64_t texts = 0;          // texts read back
  std::vector<std::string> wrong;   // texts that differ from what was written
  std::vector<std::string> errors;  // connections lost, requests refused
};

struct Clients {
  asio::io_context& io;
  Protocol protocol;
  std::vector<std::string> addresses;  // in the order of `transports`
  std::uint64_t seed = 0;
  std::string asked_key = {};  // behind a gateway: what bystanders read; empty: they ping
  Watch watch = {};
  Harm harm = {};

  void start();
};

}  // namespace weir::bystander
