// What a reader of docs/rpc.md has before its blocks.
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "rpc/context.hpp"
#include "rpc/error.hpp"
//@ 3
auto client = co_await weir::rpc::connect("rdma://127.0.0.1:9000");
