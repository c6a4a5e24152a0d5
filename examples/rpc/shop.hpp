// What client and server of the shop agree on: the functions' declarations.
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rpc/context.hpp"
#include "rpc/error.hpp"

namespace shop {

struct Item {
  std::string name;
  std::uint32_t count = 1;
};

std::int32_t add(std::int32_t a, std::int32_t b);
asio::awaitable<std::string> brew(std::string drink, weir::rpc::Context& context);

class Stock {
 public:
  std::optional<Item> find(std::string_view name) const;
  // What is left, or why not.
  weir::rpc::Result<std::uint32_t> take(const Item& wanted);

 private:
  std::map<std::string, std::uint32_t, std::less<>> stock_{{"bolt", 12}, {"nut", 7}};
};

}  // namespace shop
