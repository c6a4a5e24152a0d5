// A server: functions, and addresses where they can be called.
//
//   rpc::Server server(io);
//   server.add<echo, place>();
//   server.add<&Orders::get>(orders);
//   const rpc::Result<std::string> bound = server.listen("tcp://127.0.0.1:9000");
//   if (!bound) return std::fprintf(stderr, "%s\n", bound.error().what.c_str()), 1;
//   io.run();
//
// A plain function runs in the io_context's thread and holds up everything else there while it does: let long
// work be a coroutine that awaits, or a function that says that it blocks, which gets a thread. Functions
// take values or const references, and perhaps a Context&; they return a value, Result<value>, or an
// awaitable of either. A string_view or span argument points into the request.
//
// With ServerOptions::threads above 1, connections are dealt to that many threads in turn, address by
// address: the io_context's and the server's own. A connection stays in its thread, with everything that
// happens for it: functions, streams, interceptors, authentication. So functions and objects are then called
// by several threads at once, though those of one connection never are. Over RDMA each thread has an engine.
//
// Ownership: connections belong to the server; destroying it closes them and cancels what runs for them.
// Objects given to add() must outlive it. With threads, its destructor waits for them: for functions that
// run, not for coroutines that await. Threading: the io_context's thread, which is where functions of other
// threads post what they want of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "rpc/asio_definitions.hpp"
#include "rpc/http_options.hpp"
#include "rpc/method_stats.hpp"
#include "rpc/server/registry.hpp"
#include "rpc/server/server_connection.hpp"
#include "rpc/transport/listener.hpp"

namespace weir::rpc {

struct ServerOptions {
  // That run functions, the io_context's among them; 1 to 256. With another number no address is listened at.
  std::uint32_t threads = 1;
  ServerLimits limits;
  TransportOptions transport;
  Authentication authentication;
  ServerChain interceptors;
  CompressionOptions compression;  // of bodies, for clients that use it, too
  BlockingOptions blocking;        // threads for functions that say that they block (blocking_threads.hpp)
  // Whether callers get what() of an exception that leaves a function. It may hold names of files, queries,
  // other callers' data; interceptors see it in any case (CallEnd::error).
  bool exceptions_to_callers = false;
  bool stats = false;  // counts and latencies of each function: method_stats(), "weir.stats"
  // Answers HTTP/1.1 with JSON, too, at addresses of TCP, TLS and unix sockets. Nullopt: such a client is
  // refused.
  std::optional<HttpOptions> http;
};

struct ServerStats {
  std::uint64_t connections = 0;  // ever
  std::uint64_t refused = 0;      // for want of max_connections, or draining
  std::uint32_t open = 0;
  CompressionCounts compressed_sent;  // of results and what streams write; `before` and `after` as it left
  CompressionCounts compressed_received;
};

class Server {
 public:
  explicit Server(asio::io_context& io);
  Server(asio::io_context& io, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  template <auto... F>
    requires(sizeof...(F) > 0)
  void add() {
    (add(registered<F>(nullptr)), ...);
  }
  template <auto... F, class Object>
    requires(sizeof...(F) > 0)
  void add(Object& object) {
    static_assert((std::is_base_of_v<typename Method<F>::object, Object> && ...),
                  "not a member of this object's type");
    (add(registered<F>(const_cast<std::remove_const_t<typename Method<F>::object>*>(
         static_cast<const typename Method<F>::object*>(&object)))),
     ...);
  }
  void add(const Registered& row);
  // Gives a function that was added one more name: an older one that callers still use.
  void alias(std::string_view name, std::string_view of);

  // Returns the address, with the port that was chosen if 0 was given.
  [[nodiscard]] Result<std::string> listen(const std::string& address);

  // Reads the files of TransportOptions::tls again: connections that begin afterwards are served with them,
  // at all addresses, and those that are open keep what they began with. If a file cannot be used the error
  // says so and nothing changes.
  [[nodiscard]] Result<void> renew_certificates();

  // Accepts nothing more, takes no new calls, answers those under way. When open() is 0 all clients have
  // gone; clients of this library leave by themselves.
  void drain();
  // Closes everything now; in other threads soon after, as open() shows.
  void stop();
  std::uint32_t open() const;
  ServerStats stats() const;
  // Of functions that were called; empty without ServerOptions::stats. prometheus_text() makes it a page for
  // a scraper.
  std::vector<MethodReport> method_stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::rpc
