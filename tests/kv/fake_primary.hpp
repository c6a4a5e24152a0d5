// A primary that a test plays by hand.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "tests/kv/wire_client.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::kv::testing {

// A listener that sends whatever the test wants to everyone who connects.
class FakePrimary {
 public:
  FakePrimary() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd_, 8) != 0)
      throw std::runtime_error("no fake primary");
  }
  ~FakePrimary() { stop_listening(); }
  void stop_listening() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  std::string path() const { return folder_.file("p"); }
  WireClient accept() { return WireClient::adopted(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)); }
  // Runs the protocol up to PSYNC.
  WireClient introduced() {
    WireClient client = accept();
    for (const char* last : {"PING\r\n", "listening-port\r\n$1\r\n0\r\n", "psync2\r\n", "9.0.0\r\n"}) {
      client.through(last);
      client.send("+OK\r\n");
    }
    return client;
  }
  // Runs the protocol up to the answer to PSYNC, which the caller gives.
  WireClient greeted() {
    WireClient client = introduced();
    client.through("PSYNC\r\n");
    client.through("\r\n$");
    client.through("\r\n");
    client.through("\r\n");
    return client;
  }

 private:
  test::ScratchDirectory folder_;
  int fd_;
};

}  // namespace weir::kv::testing
