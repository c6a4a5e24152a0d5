// The functions that the tests call.
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "rpc/context.hpp"
#include "rpc/error.hpp"

namespace shop {

enum class Currency : std::uint8_t { euro, dollar };

struct Item {
  std::string name;
  std::uint32_t count = 1;
  bool operator==(const Item&) const = default;
};

struct Order {
  std::int64_t id = 0;
  std::vector<Item> items;
  std::optional<std::string> note;
  std::variant<std::monostate, double, std::string> discount;
  std::map<std::string, std::int32_t> stock;
  Currency currency = Currency::euro;
  bool operator==(const Order&) const = default;
};

std::string echo(std::string text);
std::int64_t length(std::string_view text);
std::int32_t add(std::int32_t a, std::int32_t b);
void nothing();
Order place(Order order);
asio::awaitable<Order> place_later(Order order, weir::rpc::Context& context);
asio::awaitable<void> wait_for_ever(weir::rpc::Context& context);
weir::rpc::Result<std::int32_t> divide(std::int32_t a, std::int32_t b);
asio::awaitable<weir::rpc::Result<std::int32_t>> divide_later(std::int32_t a, std::int32_t b);
std::string throws(std::string what);
asio::awaitable<std::string> throws_later(std::string what);
// Sends the attachment back, with its size as the result.
std::uint64_t reflect(weir::rpc::Context& context);
asio::awaitable<std::uint64_t> reflect_later(weir::rpc::Context& context);
std::string caller(weir::rpc::Context& context);
std::string sized(std::uint32_t bytes);

// Counts the outcomes of wait_for_ever in this process.
struct Waits {
  int started = 0;
  int cancelled = 0;
};
extern Waits waits;

class Counter {
 public:
  std::int32_t add(std::int32_t by) { return value_ += by; }
  std::int32_t get() const { return value_; }

 private:
  std::int32_t value_ = 0;
};

}  // namespace shop
