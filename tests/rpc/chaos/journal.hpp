// The chaos test's servers: they write each operation to a file that outlives them, and then answer.
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>

namespace chaos {

std::uint64_t append(std::uint64_t operation);
// The same, after as many turns of the io_context as the operation's last two bits say, so that a server is
// killed with calls in every state.
asio::awaitable<std::uint64_t> append_later(std::uint64_t operation);
// Writes its record, and never answers.
asio::awaitable<std::uint64_t> hang(std::uint64_t operation);

}  // namespace chaos
