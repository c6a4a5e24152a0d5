#include "kv/clients/unconnected_client.hpp"

#include <string>

#include "kv/net/connection.hpp"

namespace weir::kv {

namespace {

class NoConnection final : public Connection {
 public:
  explicit NoConnection(std::string_view what) : what_(what) {}

  void start(Session&) override {}
  void flush() override {}
  void close() override {}
  bool finished() const override { return true; }
  std::string_view kind() const override { return what_; }
  std::string peer_address() const override { return std::string(what_); }
  std::string local_address() const override { return std::string(what_); }
  bool local() const override { return true; }

 private:
  std::string_view what_;
};

}  // namespace

std::unique_ptr<Client> make_unconnected_client(ServerCommon& server, ClientHost& host,
                                                std::string_view what) {
  auto client = std::make_unique<Client>(server, host, 0, std::make_unique<NoConnection>(what));
  client->in_exec = true;  // its commands do not block
  client->reply.mute();
  return client;
}

}  // namespace weir::kv
