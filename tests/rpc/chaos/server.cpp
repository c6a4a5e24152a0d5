// A server of the chaos test: serves until it is killed.
//
// usage: rpc_chaos_server ADDRESS JOURNAL
//
// A record is 8 bytes, appended with one write: a killed process has written all of it or nothing,
// because no record crosses a page.
#include "rpc/server.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "tests/rpc/chaos/journal.hpp"

namespace {
int journal = -1;
}

namespace chaos {

std::uint64_t append(std::uint64_t operation) {
  if (write(journal, &operation, sizeof operation) != sizeof operation)
    throw std::system_error(errno, std::generic_category(), "journal");
  return operation;
}

asio::awaitable<std::uint64_t> append_later(std::uint64_t operation) {
  for (std::uint64_t turns = operation & 3; turns > 0; --turns) co_await asio::post(asio::use_awaitable);
  co_return append(operation);
}

// Writes its record, and never answers.
asio::awaitable<std::uint64_t> hang(std::uint64_t operation) {
  append(operation);
  asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await timer.async_wait(asio::use_awaitable);
  co_return operation;
}

}  // namespace chaos

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: rpc_chaos_server ADDRESS JOURNAL\n"), 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  journal = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (journal < 0) return std::perror(argv[2]), 1;
  asio::io_context io(1);
  weir::rpc::Server server(io);
  server.add<chaos::append, chaos::append_later, chaos::hang>();
  const auto address = server.listen(argv[1]);
  if (!address) return std::fprintf(stderr, "%s\n", address.error().what.c_str()), 1;
  std::puts(address->c_str());
  std::fflush(stdout);
  io.run();
  return 0;
}
