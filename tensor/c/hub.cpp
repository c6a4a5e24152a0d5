// Hubs for C: arrays as structures, and tokens in place of owners.
#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tensor/c/options.hpp"

using namespace weir::tensor;

namespace {

// Tokens whose memory the program may use again.
struct Released {
  std::mutex mutex;
  std::deque<std::uint64_t> tokens;
};

}  // namespace

struct weir_tensor_lease {
  std::shared_ptr<const Lease> lease;
  std::vector<std::string> words;  // once it has ended
};
struct weir_tensor_hub {
  std::shared_ptr<Released> released = std::make_shared<Released>();
  std::unique_ptr<Hub> hub;
  std::string address;
};

namespace {

// Publishes the arrays by `publish`, with an owner that gives the token back in the end.
template <class Publish>
Result<void> publish_by(weir_tensor_hub* hub, const char* name, const weir_tensor_array* arrays,
                        std::size_t count, int as_tree, std::uint64_t token, Publish publish) {
  if (hub == nullptr || name == nullptr) return fail(Errc::bad_array, "a hub and a name are needed");
  const Result<std::vector<TensorView>> views = c::views_of(arrays, count, as_tree);
  if (!views) return std::unexpected(views.error());
  // Set once publishing succeeds: after an error the program keeps its memory, and the token never comes
  // back.
  const auto kept = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<const void> owner(new std::byte,
                                    [kept, token, released = hub->released](const std::byte* mark) {
                                      delete mark;
                                      if (!*kept) return;
                                      const std::lock_guard lock(released->mutex);
                                      released->tokens.push_back(token);
                                    });
  *kept = true;
  const Result<void> published = publish(*views, owner);
  if (!published) *kept = false;
  return published;
}

}  // namespace

extern "C" {

int weir_tensor_listen(weir_tensor_hub** hub, const char* address, const weir_tensor_options* options,
                       weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (hub == nullptr || address == nullptr) return fail(Errc::bad_address, "an address is needed");
    const weir_tensor_options defaults;
    const weir_tensor_options& chosen = options != nullptr ? *options : defaults;
    const auto provider = c::provider_for(chosen, address);
    auto made = std::make_unique<weir_tensor_hub>();
    auto listening = Hub::listen(address, provider, chosen.hub);
    if (!listening) return std::unexpected(listening.error());
    made->hub = std::move(*listening);
    made->address = made->hub->address();
    *hub = made.release();
    return {};
  });
}

void weir_tensor_hub_free(weir_tensor_hub* hub) { delete hub; }
const char* weir_tensor_hub_address(const weir_tensor_hub* hub) { return hub->address.c_str(); }
uint64_t weir_tensor_hub_generation(const weir_tensor_hub* hub) { return hub->hub->generation(); }

int weir_tensor_publish(weir_tensor_hub* hub, const char* name, const weir_tensor_array* arrays, size_t count,
                        int as_tree, uint64_t token, uint64_t* version, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    return publish_by(
        hub, name, arrays, count, as_tree, token,
        [&](std::span<const TensorView> views, std::shared_ptr<const void> owner) -> Result<void> {
          const auto published = hub->hub->publish_tree(name, views, std::move(owner));
          if (!published) return std::unexpected(published.error());
          if (version != nullptr) *version = *published;
          return {};
        });
  });
}

int weir_tensor_lend(weir_tensor_hub* hub, const char* name, const weir_tensor_array* arrays, size_t count,
                     int as_tree, uint64_t token, uint32_t readers, int64_t timeout_us,
                     weir_tensor_lease** lease, uint64_t* version, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (lease == nullptr) return fail(Errc::bad_array, "a place for the lease is needed");
    return publish_by(
        hub, name, arrays, count, as_tree, token,
        [&](std::span<const TensorView> views, std::shared_ptr<const void> owner) -> Result<void> {
          const LeaseSettings settings{.readers = std::max<std::uint32_t>(readers, 1),
                                       .time = std::chrono::microseconds(std::max<int64_t>(timeout_us, 0))};
          auto lent = hub->hub->lend_tree(name, views, std::move(owner), settings);
          if (!lent) return std::unexpected(lent.error());
          if (version != nullptr) *version = (*lent)->version();
          *lease = new weir_tensor_lease{std::move(*lent), {}};
          return {};
        });
  });
}

int weir_tensor_lease_wait(weir_tensor_lease* lease, int64_t timeout_us) {
  const auto outcome = lease->lease->wait(std::chrono::microseconds(std::max<int64_t>(timeout_us, 0)));
  if (!outcome) return WEIR_TENSOR_LEASE_LASTS;
  if (lease->words.empty()) lease->words = outcome->words;
  return static_cast<int>(outcome->end);
}

const char* weir_tensor_lease_word(const weir_tensor_lease* lease, size_t which, size_t* bytes) {
  if (which >= lease->words.size()) return nullptr;
  if (bytes != nullptr) *bytes = lease->words[which].size();
  return lease->words[which].c_str();
}

void weir_tensor_lease_free(weir_tensor_lease* lease) { delete lease; }

size_t weir_tensor_released(weir_tensor_hub* hub, uint64_t* tokens, size_t most) {
  const std::lock_guard lock(hub->released->mutex);
  std::size_t taken = 0;
  for (; taken < most && !hub->released->tokens.empty(); ++taken) {
    tokens[taken] = hub->released->tokens.front();
    hub->released->tokens.pop_front();
  }
  return taken;
}

int weir_tensor_withdraw(weir_tensor_hub* hub, const char* name) { return hub->hub->withdraw(name) ? 1 : 0; }

void weir_tensor_hub_get_stats(weir_tensor_hub* hub, weir_tensor_hub_stats* stats) {
  const HubStats now = hub->hub->stats();
  const MemoryTiers memory = hub->hub->memory();
  const weir_tensor_hub_stats all = {stats->size,
                                     now.connections,
                                     now.connections_made,
                                     now.requests,
                                     now.written,
                                     now.written_bytes,
                                     now.located,
                                     now.metadata_updates,
                                     now.superseded,
                                     now.broken,
                                     hub->hub->live_bytes(),
                                     now.pushes,
                                     now.pushed_bytes,
                                     now.pushed_held_bytes,
                                     now.tcp_connections,
                                     memory.private_bytes,
                                     memory.shared_bytes,
                                     now.direct_bytes,
                                     now.packed_bytes,
                                     now.frames};
  c::hand_over(all, stats);
}

int weir_tensor_hub_get(weir_tensor_hub* hub, const char* name, const weir_tensor_wish* wish,
                        weir_tensor_fetched** fetched, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (hub == nullptr || name == nullptr || fetched == nullptr)
      return fail(Errc::bad_array, "a hub and a name are needed");
    if (wish != nullptr && wish->size >= sizeof(weir_tensor_wish) && wish->runs > 0)
      return fail(Errc::bad_array,
                  "rows are for peers: in the hub's process, take them of the whole version");
    std::uint64_t newer_than = wish != nullptr ? wish->newer_than : 0;
    // Version numbers of another hub mean nothing to this one, so any version is new.
    if (wish != nullptr && wish->generation != 0 && wish->generation != hub->hub->generation())
      newer_than = 0;
    const auto timeout =
        std::chrono::microseconds(wish != nullptr ? std::max<int64_t>(wish->timeout_us, 0) : 0);
    Result<Held> held = hub->hub->get(name, newer_than, timeout);
    if (!held) return std::unexpected(held.error());
    Fetched as_fetched;
    as_fetched.version = held->version;
    as_fetched.generation = hub->hub->generation();
    as_fetched.metadata = std::move(held->metadata);
    // The header forbids writing to this memory.
    as_fetched.data = {const_cast<std::byte*>(held->data.data()), held->data.size()};
    as_fetched.memory = std::const_pointer_cast<void>(std::move(held->memory));
    *fetched = new weir_tensor_fetched{std::move(as_fetched)};
    return {};
  });
}

}  // extern "C"
