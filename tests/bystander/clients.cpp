#include "tests/bystander/clients.hpp"

#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <random>

namespace weir::bystander {
namespace {

using std::chrono::milliseconds;

asio::awaitable<void> rest(asio::io_context& io, std::chrono::milliseconds time) {
  asio::steady_timer timer(io, time);
  co_await timer.async_wait(asio::use_awaitable);
}

void note(Clients& all, std::size_t transport, const char* who, const std::exception& why) {
  all.harm.errors.push_back(std::string(who) + " over " + transports[transport] + ": " + why.what());
}

asio::awaitable<void> ask(const Clients& all, HonestClient& client) {
  if (all.asked_key.empty()) {
    co_await client.ping();
  } else {
    co_await client.get(all.asked_key);
  }
}

asio::awaitable<void> stay(Clients& all, std::size_t transport) {
  auto client = co_await meet(all.io, all.protocol, all.addresses[transport]);
  for (;;) {
    all.watch.asks(transport, Visit::standing, Clock::now());
    co_await ask(all, *client);
    all.watch.answered(transport, Visit::standing, Clock::now());
    co_await rest(all.io, milliseconds(2));
  }
}

asio::awaitable<void> visit(Clients& all, std::size_t transport) {
  for (;;) {
    all.watch.asks(transport, Visit::fresh, Clock::now());
    {
      auto client = co_await meet(all.io, all.protocol, all.addresses[transport]);
      co_await ask(all, *client);
    }
    all.watch.answered(transport, Visit::fresh, Clock::now());
    co_await rest(all.io, milliseconds(30));
  }
}

asio::awaitable<void> visit_over_slow_tls(Clients& all, std::size_t transport) {
  for (;;) {
    all.watch.asks(transport, Visit::slow, Clock::now());
    co_await visit_slowly(all.io, all.protocol, all.addresses[transport]);
    all.watch.answered(transport, Visit::slow, Clock::now());
    co_await rest(all.io, milliseconds(30));
  }
}

asio::awaitable<void> wait_again_and_again(Clients& all, std::size_t transport) {
  for (std::size_t number = 0;; ++number) {
    all.watch.asks(transport, Visit::timed, Clock::now());
    co_await wait_in_vain(all.io, all.addresses[transport], number);
    all.watch.answered(transport, Visit::timed, Clock::now());
    co_await rest(all.io, milliseconds(10));
  }
}

// Sizes from a few bytes to several receive buffers.
asio::awaitable<void> write_and_read(Clients& all, std::size_t transport) {
  constexpr std::size_t sizes[] = {20, 300, 5'000, 70'000, 400'000};
  std::mt19937_64 random(all.seed + transport);
  auto client = co_await meet(all.io, all.protocol, all.addresses[transport]);
  for (std::uint64_t number = 0;; ++number) {
    const std::string key = "victim-" + std::to_string(transport) + "-" + std::to_string(number % 8);
    const std::size_t size = sizes[random() % std::size(sizes)];
    const std::string text = check_text(key, number, 1 + random() % size);
    co_await client->put(key, text);
    const std::string back = co_await client->get(key);
    ++all.harm.texts;
    if (back != text)
      all.harm.wrong.push_back(std::string(transports[transport]) + ": wrote " + text.substr(0, 60) + " (" +
                               std::to_string(text.size()) + " bytes), read " + back.substr(0, 60) + " (" +
                               std::to_string(back.size()) + " bytes)");
    co_await rest(all.io, milliseconds(5));
  }
}

using Life = asio::awaitable<void> (*)(Clients&, std::size_t);
asio::awaitable<void> live(Clients& all, std::size_t transport, Life life, const char* who) {
  for (;;) {
    try {
      co_await life(all, transport);
    } catch (const std::exception& why) {
      note(all, transport, who, why);
    }
    co_await rest(all.io, milliseconds(10));
  }
}

}  // namespace

void Clients::start() {
  const auto rethrow = [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  };
  for (std::size_t transport = 0; transport < transports.size(); ++transport) {
    asio::co_spawn(io, live(*this, transport, stay, "bystander"), rethrow);
    asio::co_spawn(io, live(*this, transport, visit, "newcomer"), rethrow);
    asio::co_spawn(io, live(*this, transport, write_and_read, "victim"), rethrow);
    if (transports[transport] == std::string_view("tls"))
      asio::co_spawn(io, live(*this, transport, visit_over_slow_tls, "slow newcomer"), rethrow);
    if (protocol == Protocol::resp && asked_key.empty() && transports[transport] == std::string_view("unix"))
      asio::co_spawn(io, live(*this, transport, wait_again_and_again, "waiting client"), rethrow);
  }
}

}  // namespace weir::bystander
