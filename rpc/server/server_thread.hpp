// A thread of a server's own (ServerOptions::threads): an io_context that runs until end().
//
// Threading: io() may be posted to from any thread while this lives; the rest from the thread that made it.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <string>
#include <thread>

namespace weir::rpc {

class ServerThread {
 public:
  explicit ServerThread(const std::string& name);  // at most 15 characters of it are shown by ps -T
  ~ServerThread();                                 // after end()
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  asio::io_context& io() { return io_; }
  // Runs `farewell` in that thread, then everything it made ready, and waits for the thread. Operations that
  // still wait for something else are freed with the io_context: a coroutine that does not end when it is
  // cancelled delays nobody.
  void end(std::function<void()> farewell);

 private:
  void run();

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace weir::rpc
