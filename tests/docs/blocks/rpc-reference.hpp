// What a reader of docs/rpc-reference.md has before its blocks.
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "examples/rpc/shop.hpp"
#include "rpc/client.hpp"
#include "rpc/error_details.hpp"
#include "rpc/pool.hpp"
#include "rpc/server.hpp"
#include "rpc/tracing.hpp"

namespace rpc = weir::rpc;

struct Camera {
  void read_into(std::span<std::byte> room);
};
struct Tick {
  std::uint32_t number = 0;
};
struct Row {
  std::string text;
};
namespace shop {
struct Order {
  std::string item;
};
struct Receipt {
  std::uint32_t number = 0;
};
Receipt place(const Order& order);
std::string brew_with(std::string drink, std::chrono::minutes time);
std::string brew_drink(std::string drink);
asio::awaitable<void> ticks(std::uint32_t count, weir::rpc::Writer<Tick> out);
asio::awaitable<std::int64_t> total(weir::rpc::Reader<std::int32_t> in);
Row find(std::string_view key);
}  // namespace shop
std::string flip(std::string text);
void use(const Tick& tick);
void log(std::string_view method, std::chrono::nanoseconds latency);

extern std::map<std::string, std::string> users;
extern asio::io_context io;
extern weir::rpc::Client client;
extern weir::rpc::Server server;
extern weir::rpc::ServerOptions server_options;
extern weir::rpc::ConnectOptions connect_options;
//@ 1
shop::Order order;
//@ 4
std::vector<std::byte> picture, room;
weir::rpc::Buffer back;
//@ 5
std::size_t bytes = 4096;
Camera camera;
weir::rpc::CallOptions options;
//@ 8
weir::rpc::Result<int> result;
//@ 12
std::uint64_t my_random_number = 4;
//@ 14
weir::rpc::PoolOptions options;
//@ 17
weir::rpc::ServerOptions options;
