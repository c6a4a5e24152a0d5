// Peers for C.
#include <algorithm>
#include <new>
#include <utility>

#include "tensor/c/options.hpp"

using namespace weir::tensor;

struct weir_tensor_peer {
  std::unique_ptr<Peer> peer;
};
struct weir_tensor_follower {
  std::unique_ptr<Follower> follower;
};
struct weir_tensor_pending {
  std::shared_ptr<Fetch> fetch;
  std::chrono::nanoseconds timeout;
};

namespace {

constexpr std::chrono::seconds longest_answer{30};

std::chrono::nanoseconds patience_of(std::int64_t timeout_us) {
  return timeout_us > 0 ? std::chrono::microseconds(timeout_us) : std::chrono::nanoseconds(longest_answer);
}

Result<FetchOptions> options_of(const weir_tensor_wish* wish) {
  FetchOptions options;
  if (wish == nullptr) return options;
  options.newer_than = wish->newer_than;
  options.generation = wish->generation;
  if (wish->timeout_us > 0) options.timeout = std::chrono::microseconds(wish->timeout_us);
  if (wish->size >= sizeof(weir_tensor_wish) && wish->runs > 0) {
    if (wish->rows == nullptr) return fail(Errc::bad_array, "there are runs of rows, and rows is NULL");
    for (const weir_tensor_rows& run : std::span(wish->rows, wish->runs))
      options.rows.push_back({run.first, run.count});
  }
  if (wish->out == nullptr) return options;
  const weir_tensor_array& out = *wish->out;
  if (out.dimensions > most_dimensions || (out.dimensions > 0 && out.shape == nullptr))
    return fail(Errc::bad_array, "out needs a shape of at most 64 dimensions");
  TensorInfo info{"", {out.kind, out.bits, out.lanes}, {out.shape, out.shape + out.dimensions}, 0};
  const std::optional<std::uint64_t> bytes = info.dtype.valid() ? info.bytes() : std::nullopt;
  if (!bytes || (*bytes > 0 && out.data == nullptr)) return fail(Errc::bad_array, "out is not a valid array");
  options.out = Out{info.dtype, std::move(info.shape),
                    std::span(static_cast<std::byte*>(out.data), static_cast<std::size_t>(*bytes))};
  return options;
}

// push_tree or add_tree.
using Send = Result<std::uint64_t> (Peer::*)(std::string_view, std::span<const TensorView>,
                                             std::chrono::nanoseconds);
int send(Send how, weir_tensor_peer* peer, const char* name, const weir_tensor_array* arrays,
         std::size_t count, int as_tree, std::int64_t timeout_us, std::uint64_t* version,
         weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (peer == nullptr || name == nullptr) return fail(Errc::bad_array, "a peer and a name are needed");
    const Result<std::vector<TensorView>> views = c::views_of(arrays, count, as_tree);
    if (!views) return std::unexpected(views.error());
    const std::chrono::nanoseconds timeout = patience_of(timeout_us);
    const Result<std::uint64_t> pushed = (*peer->peer.*how)(name, *views, timeout);
    if (!pushed) return std::unexpected(pushed.error());
    if (version != nullptr) *version = *pushed;
    return {};
  });
}

}  // namespace

extern "C" {

int weir_tensor_connect(weir_tensor_peer** peer, const char* address, const weir_tensor_options* options,
                        weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (peer == nullptr || address == nullptr) return fail(Errc::bad_address, "an address is needed");
    const weir_tensor_options defaults;
    const weir_tensor_options& chosen = options != nullptr ? *options : defaults;
    const auto provider = c::provider_for(chosen, address);
    auto connected = Peer::connect(address, provider, chosen.peer);
    if (!connected) return std::unexpected(connected.error());
    *peer = new weir_tensor_peer{std::move(*connected)};
    return {};
  });
}

void weir_tensor_peer_free(weir_tensor_peer* peer) { delete peer; }
uint64_t weir_tensor_peer_generation(const weir_tensor_peer* peer) { return peer->peer->generation(); }

weir_tensor_pending* weir_tensor_start(weir_tensor_peer* peer, const char* name,
                                       const weir_tensor_wish* wish) {
  auto* pending = new (std::nothrow) weir_tensor_pending{nullptr, longest_answer};
  if (pending == nullptr) return nullptr;
  Result<FetchOptions> options = options_of(wish);
  if (!options) {
    pending->fetch = std::make_shared<Fetch>();
    pending->fetch->failed = options.error();
    pending->fetch->done = true;
    return pending;
  }
  pending->timeout = options->timeout.value_or(longest_answer);
  pending->fetch = peer->peer->start(name != nullptr ? name : "", std::move(*options));
  return pending;
}

int weir_tensor_finish(weir_tensor_peer* peer, weir_tensor_pending* pending, weir_tensor_fetched** fetched,
                       weir_tensor_error* error) {
  const std::unique_ptr<weir_tensor_pending> owned(pending);
  return c::guarded(error, [&]() -> Result<void> {
    if (owned == nullptr) return fail(Errc::too_much, "there is no memory");
    Result<Fetched> got = peer->peer->wait(owned->fetch, owned->timeout);
    if (!got) return std::unexpected(got.error());
    *fetched = new weir_tensor_fetched{std::move(*got)};
    return {};
  });
}

int weir_tensor_wait(weir_tensor_peer* peer, const weir_tensor_pending* pending, int64_t timeout_us) {
  if (pending == nullptr) return 1;
  const std::chrono::microseconds timeout(std::max<int64_t>(timeout_us, 0));
  return peer->peer->wait_until_done(pending->fetch, timeout) ? 1 : 0;
}

int weir_tensor_descriptor(weir_tensor_peer* peer, int* descriptor, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (peer == nullptr || descriptor == nullptr) return fail(Errc::bad_array, "a peer is needed");
    const Result<int> opened = peer->peer->descriptor();
    if (!opened) return std::unexpected(opened.error());
    *descriptor = *opened;
    return {};
  });
}

void weir_tensor_cancel(weir_tensor_peer* peer, weir_tensor_pending* pending) {
  if (pending == nullptr) return;
  pending->timeout = {};
  weir_tensor_fetched* fetched = nullptr;
  if (weir_tensor_finish(peer, pending, &fetched, nullptr) == 0) weir_tensor_fetched_free(fetched);
}

int weir_tensor_done(weir_tensor_peer* peer, const char* name, uint64_t version, uint64_t generation,
                     const char* word, size_t word_bytes, int64_t timeout_us, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (peer == nullptr || name == nullptr || (word == nullptr && word_bytes > 0))
      return fail(Errc::bad_array, "a peer, a name and a word are needed");
    const std::string_view left = word_bytes > 0 ? std::string_view(word, word_bytes) : std::string_view();
    return peer->peer->done(name, version, generation, left, patience_of(timeout_us));
  });
}

int weir_tensor_fetch(weir_tensor_peer* peer, const char* name, const weir_tensor_wish* wish,
                      weir_tensor_fetched** fetched, weir_tensor_error* error) {
  return weir_tensor_finish(peer, weir_tensor_start(peer, name, wish), fetched, error);
}

int weir_tensor_fetch_many(weir_tensor_peer* peer, const char* const* names,
                           const weir_tensor_wish* const* wishes, size_t count, weir_tensor_fetched** fetched,
                           weir_tensor_error* errors) {
  if (fetched == nullptr) return WEIR_TENSOR_BAD_ARRAY;
  std::fill_n(fetched, count, nullptr);
  weir_tensor_error whole{};
  int first = 0;
  const int thrown = c::guarded(&whole, [&]() -> Result<void> {
    if (peer == nullptr || names == nullptr) return fail(Errc::bad_array, "a peer and names are needed");
    std::vector<Wanted> wanted(count);
    for (std::size_t i = 0; i < count; ++i) {
      Result<FetchOptions> options = options_of(wishes != nullptr ? wishes[i] : nullptr);
      if (!options) return std::unexpected(options.error());
      wanted[i] = {names[i] != nullptr ? names[i] : "", std::move(*options)};
    }
    std::vector<Result<Fetched>> got = peer->peer->fetch_many(std::move(wanted));
    for (std::size_t i = 0; i < count; ++i) {
      if (got[i])
        fetched[i] = new weir_tensor_fetched{std::move(*got[i])};
      else if (const int code = c::report(errors != nullptr ? errors + i : nullptr, got[i].error());
               first == 0)
        first = code;
    }
    return {};
  });
  if (thrown == 0) return first;
  for (std::size_t i = 0; i < count; ++i) {
    weir_tensor_fetched_free(std::exchange(fetched[i], nullptr));
    if (errors != nullptr) errors[i] = whole;
  }
  return thrown;
}

int weir_tensor_follow(weir_tensor_peer* peer, const char* name, const weir_tensor_wish* wish, uint32_t ahead,
                       weir_tensor_follower** follower, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (peer == nullptr || name == nullptr || follower == nullptr)
      return fail(Errc::bad_array, "a peer and a name are needed");
    *follower = new weir_tensor_follower{peer->peer->follow(name, wish != nullptr ? wish->newer_than : 0,
                                                            wish != nullptr ? wish->generation : 0,
                                                            ahead != 0 ? ahead : 2)};
    return {};
  });
}

int weir_tensor_follow_next(weir_tensor_follower* follower, int64_t timeout_us, weir_tensor_fetched** fetched,
                            weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (follower == nullptr || fetched == nullptr) return fail(Errc::bad_array, "a follower is needed");
    Result<Fetched> got =
        follower->follower->next(std::chrono::microseconds(std::max<int64_t>(timeout_us, 0)));
    if (!got) return std::unexpected(got.error());
    *fetched = new weir_tensor_fetched{std::move(*got)};
    return {};
  });
}

void weir_tensor_follow_free(weir_tensor_follower* follower) { delete follower; }

uint64_t weir_tensor_fetched_version(const weir_tensor_fetched* fetched) { return fetched->what.version; }
uint64_t weir_tensor_fetched_generation(const weir_tensor_fetched* fetched) {
  return fetched->what.generation;
}
uint64_t weir_tensor_fetched_metadata_id(const weir_tensor_fetched* fetched) {
  return fetched->what.metadata_id;
}
void* weir_tensor_fetched_data(const weir_tensor_fetched* fetched, size_t* bytes) {
  if (bytes != nullptr) *bytes = fetched->what.data.size();
  return fetched->what.data.data();
}
size_t weir_tensor_fetched_count(const weir_tensor_fetched* fetched) {
  return fetched->what.metadata->tensors.size();
}

int weir_tensor_fetched_array(const weir_tensor_fetched* fetched, size_t which, weir_tensor_array* array) {
  const auto& tensors = fetched->what.metadata->tensors;
  if (which >= tensors.size()) return WEIR_TENSOR_BAD_ARRAY;
  const TensorInfo& info = tensors[which];
  *array = {.kind = info.dtype.code,
            .bits = info.dtype.bits,
            .lanes = info.dtype.lanes,
            .dimensions = static_cast<std::uint32_t>(info.shape.size()),
            .shape = info.shape.data(),
            .data = fetched->what.data.data() + info.offset,
            .name = info.name.data(),
            .name_size = info.name.size()};
  return 0;
}

void weir_tensor_fetched_free(weir_tensor_fetched* fetched) { delete fetched; }

void weir_tensor_peer_get_stats(weir_tensor_peer* peer, weir_tensor_peer_stats* stats) {
  const PeerStats now = peer->peer->stats();
  const weir_tensor_peer_stats all = {stats->size,          now.fetches,
                                      now.fetched_bytes,    now.read_bytes,
                                      now.metadata_updates, now.connects,
                                      now.pushes,           now.pushed_bytes,
                                      now.fallbacks,        static_cast<std::uint64_t>(now.transport)};
  c::hand_over(all, stats);
}

int weir_tensor_push(weir_tensor_peer* peer, const char* name, const weir_tensor_array* arrays, size_t count,
                     int as_tree, int64_t timeout_us, uint64_t* version, weir_tensor_error* error) {
  return send(&Peer::push_tree, peer, name, arrays, count, as_tree, timeout_us, version, error);
}

int weir_tensor_add(weir_tensor_peer* peer, const char* name, const weir_tensor_array* arrays, size_t count,
                    int as_tree, int64_t timeout_us, uint64_t* version, weir_tensor_error* error) {
  return send(&Peer::add_tree, peer, name, arrays, count, as_tree, timeout_us, version, error);
}

}  // extern "C"
