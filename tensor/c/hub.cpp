// Hubs for C: arrays by structure, and tokens instead of owners.
#include <atomic>
#include <deque>
#include <mutex>
#include <new>

#include "tensor/c/options.hpp"

using namespace weir::tensor;

namespace {

// Tokens whose memory is the program's again.
struct Released {
  std::mutex mutex;
  std::deque<std::uint64_t> tokens;
};

Result<TensorView> view_of(const weir_tensor_array& array) {
  if (array.dimensions > most_dimensions || (array.dimensions > 0 && array.shape == nullptr))
    return fail(Errc::bad_array, "an array has at most 64 dimensions, and a shape");
  if (array.name_size > 0 && array.name == nullptr) return fail(Errc::bad_array, "a name is missing");
  return TensorView{.name = array.name_size > 0 ? std::string(array.name, array.name_size) : std::string(),
                    .dtype = {array.kind, array.bits, array.lanes},
                    .shape = {array.shape, array.shape + array.dimensions},
                    .data = array.data};
}

}  // namespace

struct weir_tensor_hub {
  std::shared_ptr<Released> released = std::make_shared<Released>();
  std::unique_ptr<Hub> hub;
  std::string address;
};

extern "C" {

int weir_tensor_listen(weir_tensor_hub** hub, const char* address, const weir_tensor_options* options,
                       weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (hub == nullptr || address == nullptr) return fail(Errc::bad_address, "an address is needed");
    const weir_tensor_options defaults;
    const weir_tensor_options& chosen = options != nullptr ? *options : defaults;
    const auto provider = c::provider_for(chosen);
    if (!provider) return std::unexpected(provider.error());
    auto made = std::make_unique<weir_tensor_hub>();
    auto listening = Hub::listen(address, *provider, chosen.hub);
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
    if (hub == nullptr || name == nullptr || (arrays == nullptr && count > 0))
      return fail(Errc::bad_array, "a hub, a name and arrays are needed");
    if (as_tree == 0 && count != 1) return fail(Errc::bad_array, "an array is one");
    std::vector<TensorView> views;
    views.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      Result<TensorView> view = view_of(arrays[i]);
      if (!view) return std::unexpected(view.error());
      views.push_back(std::move(*view));
    }
    // Not before it is published: an error leaves the memory with the program, whose token never comes.
    const auto kept = std::make_shared<std::atomic<bool>>(false);
    const std::shared_ptr<const void> owner(new std::byte,
                                            [kept, token, released = hub->released](const std::byte* mark) {
                                              delete mark;
                                              if (!*kept) return;
                                              const std::lock_guard lock(released->mutex);
                                              released->tokens.push_back(token);
                                            });
    *kept = true;
    const auto published = hub->hub->publish_tree(name, views, owner);
    if (!published) {
      *kept = false;
      return std::unexpected(published.error());
    }
    if (version != nullptr) *version = *published;
    return {};
  });
}

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
  if (stats->size < sizeof *stats) return;
  const HubStats now = hub->hub->stats();
  *stats = {stats->size,    now.connections,   now.connections_made,  now.requests,
            now.written,    now.written_bytes, now.located,           now.metadata_updates,
            now.superseded, now.broken,        hub->hub->live_bytes()};
}

}  // extern "C"
