#include "tests/bystander/honest_client.hpp"

#include <chrono>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "rpc/client.hpp"
#include "tests/bystander/requests.hpp"
#include "tests/bystander/services.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::bystander {
namespace {

class RespClient final : public HonestClient {
 public:
  explicit RespClient(LinePtr line) : line_(std::move(line)) {}

  asio::awaitable<void> ping() override {
    const std::string request = kv::testing::encode({"PING"});
    const std::string reply = co_await call(request);
    expect(reply, "+PONG\r\n");
  }
  asio::awaitable<void> authenticate() {
    const std::string request = kv::testing::encode({"AUTH", password});
    const std::string reply = co_await call(request);
    expect(reply, "+OK\r\n");
  }
  asio::awaitable<void> put(std::string key, std::string text) override {
    const std::string request = kv::testing::encode({"SET", key, text});
    const std::string reply = co_await call(request);
    expect(reply, "+OK\r\n");
  }
  asio::awaitable<std::string> get(std::string key) override {
    const std::string request = kv::testing::encode({"GET", key});
    const std::string reply = co_await call(request);
    const std::size_t line = reply.find("\r\n") + 2;
    if (reply[0] != '$' || reply.size() < line + 2) throw std::runtime_error("GET: " + reply.substr(0, 100));
    co_return reply.substr(line, reply.size() - line - 2);
  }

  asio::awaitable<std::string> call(std::string request) {
    const bool sent = co_await line_->write(std::move(request));
    if (!sent) throw std::runtime_error("the connection ended while a request was sent");
    std::size_t size = 0;
    while ((size = kv::testing::whole_reply(buffer_)) == 0) {
      const std::string more = co_await line_->read();
      if (more.empty()) throw std::runtime_error("the connection ended before the reply");
      buffer_ += more;
    }
    std::string reply = buffer_.substr(0, size);
    buffer_.erase(0, size);
    co_return reply;
  }

 private:
  static void expect(const std::string& reply, const std::string& wanted) {
    if (reply != wanted) throw std::runtime_error("the server answers " + reply.substr(0, 100));
  }

  LinePtr line_;
  std::string buffer_;
};

class RpcClient final : public HonestClient {
 public:
  explicit RpcClient(rpc::Client client) : client_(std::move(client)) {}
  asio::awaitable<void> ping() override {
    const auto reply = co_await client_.call<bystander::ping>();
    if (!reply) throw std::runtime_error(reply.error().what);
  }
  asio::awaitable<void> put(std::string key, std::string text) override {
    const auto reply = co_await client_.call<bystander::put>(key, text);
    if (!reply) throw std::runtime_error(reply.error().what);
  }
  asio::awaitable<std::string> get(std::string key) override {
    auto reply = co_await client_.call<bystander::get>(key);
    if (!reply) throw std::runtime_error(reply.error().what);
    co_return std::move(*reply);
  }

 private:
  rpc::Client client_;
};

}  // namespace

asio::awaitable<std::unique_ptr<HonestClient>> meet(asio::io_context& io, Protocol protocol,
                                                    std::string address) {
  if (protocol == Protocol::rpc) {
    rpc::ConnectOptions options;
    options.connect_timeout = std::chrono::seconds(120);  // the time it takes is what is measured
    options.transport.engine = &engine_of(io);
    options.transport.tls.check_certificate = false;
    // Named, so that the system's authorities are not read for each connection.
    if (const char* file = std::getenv(authority_variable)) options.transport.tls.authority_file = file;
    options.token = [] { return std::string(password); };
    auto client = co_await rpc::connect(address, options);
    if (!client) throw std::runtime_error(client.error().what);
    co_return std::make_unique<RpcClient>(std::move(*client));
  }
  LinePtr line = co_await dial(io, protocol, address);
  if (!line) throw std::runtime_error("no connection to " + address);
  auto client = std::make_unique<RespClient>(std::move(line));
  co_await client->authenticate();
  co_return client;
}

asio::awaitable<void> visit_slowly(asio::io_context& io, Protocol protocol, std::string address) {
  constexpr std::size_t asked = 5000;
  const LinePtr line = co_await dial(io, protocol, address, Tls::slowly, "127.0.0.9");
  if (!line) throw std::runtime_error("no connection to " + address);
  const std::string request = credentials(protocol) + echo_request(protocol, 1, asked);
  const bool sent = co_await line->write(request);
  if (!sent) throw std::runtime_error("the connection ended while a request was sent");
  for (std::size_t received = 0; received < asked;) {
    const std::string more = co_await line->read();
    if (more.empty()) throw std::runtime_error("the connection ended before the reply");
    received += more.size();
  }
}

asio::awaitable<void> wait_in_vain(asio::io_context& io, std::string address, std::size_t number) {
  static const std::vector<std::string> commands[] = {{"BLPOP", "nothing", "0.05"},
                                                      {"BZPOPMIN", "nothing", "0.05"},
                                                      {"WAIT", "100", "50"},
                                                      {"XREAD", "BLOCK", "50", "STREAMS", "nothing", "$"}};
  constexpr auto least = std::chrono::milliseconds(48);  // the server counts in whole milliseconds
  LinePtr line = co_await dial(io, Protocol::resp, address);
  if (!line) throw std::runtime_error("no connection to " + address);
  RespClient client(std::move(line));
  co_await client.authenticate();
  const std::vector<std::string>& words = commands[number % std::size(commands)];
  const auto began = std::chrono::steady_clock::now();
  const std::string request = kv::testing::encode(words);
  co_await client.call(request);
  if (std::chrono::steady_clock::now() - began < least)
    throw std::runtime_error(words[0] + " was answered before its time");
}

std::string check_text(const std::string& key, std::uint64_t number, std::size_t bytes) {
  const std::string unit = "<" + key + "#" + std::to_string(number) + ">";
  std::string text;
  text.reserve(bytes + unit.size());
  while (text.size() < bytes) text += unit;
  return text;
}

}  // namespace weir::bystander
