// Spans of calls, exported to an OpenTelemetry collector (OTLP over HTTP, with JSON).
//
//   rpc::TracingOptions options;
//   options.service = "shop";
//   rpc::Tracing tracing(io, options);                             // to 127.0.0.1:4318
//   server_options.interceptors.push_back(tracing.server());
//   connect_options.interceptors.push_back(tracing.client());
//
// A server's span is the child of the caller's, whose trace came with the call, and Context::trace() is then
// the server's own: pass it on in calls that the function makes (CallOptions::trace), and they are its
// children. A call whose trace is sampled is recorded; a call without a trace begins one, of which a share is
// sampled. Attempts of a pool are spans of their own.
//
// What is exported: the function's name, the times, the peer (at the server), the name and the text of an
// error; no arguments, results or metadata.
//
// Ownership: interceptors may outlive it, and record nothing then. Threading: the io_context's thread; the
// interceptors may be used by all threads of a server.
#pragma once

#include <memory>
#include <string>

#include "rpc/interceptor.hpp"
#include "rpc/tracing/span_exporter.hpp"

namespace weir::rpc {

struct TracingOptions {
  std::string service = "weir";              // service.name
  std::string collector = "127.0.0.1:4318";  // "HOST:PORT"; no TLS: an agent on this host or in this network
  std::string path = "/v1/traces";
  double sampled = 1;      // share of the traces that begin here, 0 to 1
  std::uint64_t seed = 0;  // of the ids; 0: random, as it must be where processes share a trace
  std::chrono::milliseconds every{5000};  // how long spans wait before they are sent
  std::size_t max_waiting = 8192;         // spans; further ones are dropped and counted
};

class CallSpans;

class Tracing {
 public:
  // Throws std::invalid_argument where `collector` is no address.
  Tracing(asio::io_context& io, const TracingOptions& options);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  std::shared_ptr<ServerInterceptor> server() const;
  std::shared_ptr<ClientInterceptor> client() const;
  // A program that ends: sends what waits. False: the collector did not take all of it.
  asio::awaitable<bool> flush();
  ExportStats stats() const;

 private:
  std::shared_ptr<CallSpans> spans_;
};

}  // namespace weir::rpc
