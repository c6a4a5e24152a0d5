// --lru-test: half writes, half reads, of keys that follow a power law: 20 % of them get 80 % of the
// requests.
#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <random>

#include "cli/client/standard_output.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int batch = 250;

class Keys {
 public:
  explicit Keys(long long count) : count_(count) {}

  std::string next() {
    // The inverse of a power law's distribution from 1 to count + 1, with 80 % in the first 20 %.
    constexpr double exponent = 6.2;
    const double highest = std::pow(static_cast<double>(count_) + 1, exponent + 1);
    const double number = std::pow((highest - 1) * uniform_(random_) + 1, 1 / (exponent + 1));
    return fmt::format("lru:{}", count_ - static_cast<long long>(number) + 1);
  }
  std::string value() {
    std::string text(5, ' ');
    for (char& c : text) c = static_cast<char>('A' + static_cast<int>(uniform_(random_) * 26));
    return text;
  }

 private:
  long long count_;
  std::mt19937_64 random_{std::random_device{}()};
  std::uniform_real_distribution<double> uniform_{0, 1};
};

struct CacheUse {
  std::uint64_t hits = 0, misses = 0;
};

client::Result<void> take_turn(client::Session& session, Keys& keys, CacheUse& seen) {
  std::vector<client::Arguments> requests;
  for (int i = 0; i < batch; ++i) requests.push_back({"SET", keys.next(), keys.value()});
  for (int i = 0; i < batch; ++i) requests.push_back({"GET", keys.next()});
  const auto replies = session.ask_all(requests);
  if (!replies) return std::unexpected(replies.error());
  for (std::size_t i = batch; i < replies->size(); ++i) {
    const client::Reply& reply = (*replies)[i];
    if (reply.is_error()) return client::fail(client::ErrorKind::refused, reply.text);
    ++(reply.type == client::ReplyType::null ? seen.misses : seen.hits);
  }
  return {};
}

}  // namespace

int test_cache(client::Session& session, const Options& options) {
  Keys keys(options.measurement.cache_keys);
  for (;;) {
    CacheUse seen;
    const auto until = Clock::now() + std::chrono::seconds(1);
    do {
      if (auto done = take_turn(session, keys, seen); !done) return failed(done.error());
    } while (Clock::now() < until);
    const auto gets = seen.hits + seen.misses;
    const auto share = [&](std::uint64_t part) {
      return 100.0 * static_cast<double>(part) / static_cast<double>(gets);
    };
    fmt::print("{} Gets/sec | Hits: {} ({:.2f}%) | Misses: {} ({:.2f}%)\n", gets, seen.hits, share(seen.hits),
               seen.misses, share(seen.misses));
    client::flush_output();
  }
}

}  // namespace weir::shell
