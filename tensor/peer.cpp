#include "tensor/peer.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "tensor/arrays/tree.hpp"
#include "tensor/peer/peer_core.hpp"

namespace weir::tensor {
namespace {

// Without a timeout the hub answers at once; 30 s bound the transfer.
std::chrono::nanoseconds patience_of(const FetchOptions& options) {
  const bool waits = options.timeout && options.timeout->count() > 0;
  return waits ? *options.timeout : std::chrono::seconds(30);
}

// An invalid name gives a fetch that has already failed.
std::shared_ptr<Fetch> fetch_of(std::string_view name, FetchOptions options) {
  auto fetch = std::make_shared<Fetch>();
  fetch->name = name;
  fetch->newer_than = options.newer_than;
  fetch->generation = options.generation;
  fetch->wait = options.timeout && options.timeout->count() > 0;
  fetch->out = std::move(options.out);
  fetch->rows = std::move(options.rows);
  if (name.empty() || name.size() > most_name_bytes) {
    fetch->failed = Error{Errc::bad_array, "a name has 1 to 1024 bytes", 0};
    fetch->done = true;
  }
  return fetch;
}

}  // namespace

Peer::Peer(std::shared_ptr<PeerCore> core) : core_(std::move(core)) {}
Peer::~Peer() = default;

Result<std::unique_ptr<Peer>> Peer::connect(std::string_view address,
                                            const rdma::Result<rdma::Provider>& provider,
                                            const PeerSettings& settings) try {
  auto core = std::make_shared<PeerCore>(std::string(address), settings);
  if (Result<void> opened = core->open(provider); !opened) return std::unexpected(opened.error());
  return std::unique_ptr<Peer>(new Peer(std::move(core)));
} catch (const std::system_error& refused) {  // no descriptor for its io_context
  return fail(Errc::too_much, std::string("cannot connect: ") + refused.what());
}

std::shared_ptr<Fetch> Peer::start(std::string_view name, FetchOptions options) {
  std::shared_ptr<Fetch> fetch = fetch_of(name, std::move(options));
  if (!fetch->done)
    core_->start(fetch);
  else
    core_->announce();
  return fetch;
}

Result<Fetched> Peer::wait(const std::shared_ptr<Fetch>& fetch, std::chrono::nanoseconds timeout) {
  return core_->wait(fetch, CallerDriven::after(timeout));
}

bool Peer::wait_until_done(const std::shared_ptr<Fetch>& fetch, std::chrono::nanoseconds timeout) {
  return core_->wait_any(std::span(&fetch, 1), CallerDriven::after(timeout));
}

Result<Fetched> Peer::fetch(std::string_view name, FetchOptions options) {
  const std::chrono::nanoseconds patience = patience_of(options);
  return wait(start(name, std::move(options)), patience);
}

std::vector<Result<Fetched>> Peer::fetch_many(std::vector<Wanted> wanted) {
  std::vector<std::shared_ptr<Fetch>> fetches;
  std::vector<CallerDriven::Clock::time_point> deadlines;
  for (Wanted& each : wanted) {
    deadlines.push_back(CallerDriven::after(patience_of(each.options)));
    fetches.push_back(fetch_of(each.name, std::move(each.options)));
  }
  core_->start_all(fetches);
  std::vector<Result<Fetched>> got;
  got.reserve(fetches.size());
  for (std::size_t i = 0; i < fetches.size(); ++i) got.push_back(core_->wait(fetches[i], deadlines[i]));
  return got;
}

Result<std::uint64_t> Peer::push(std::string_view name, const TensorView& array,
                                 std::chrono::nanoseconds timeout) {
  return push_tree(name, std::span(&array, 1), timeout);
}

Result<std::uint64_t> Peer::push_tree(std::string_view name, std::span<const TensorView> tensors,
                                      std::chrono::nanoseconds timeout) {
  return send(name, tensors, false, timeout);
}

Result<std::uint64_t> Peer::add(std::string_view name, const TensorView& array,
                                std::chrono::nanoseconds timeout) {
  return add_tree(name, std::span(&array, 1), timeout);
}

Result<std::uint64_t> Peer::add_tree(std::string_view name, std::span<const TensorView> tensors,
                                     std::chrono::nanoseconds timeout) {
  return send(name, tensors, true, timeout);
}

Result<std::uint64_t> Peer::send(std::string_view name, std::span<const TensorView> tensors, bool add,
                                 std::chrono::nanoseconds timeout) {
  if (name.empty() || name.size() > most_name_bytes)
    return fail(Errc::bad_array, "a name has 1 to 1024 bytes");
  Result<Tree> tree = make_tree(tensors, nullptr);
  if (!tree) return std::unexpected(tree.error());
  Result<std::vector<std::byte>> block = encode(tree->metadata);
  if (!block) return std::unexpected(block.error());
  auto push = std::make_shared<Fetch>();
  push->name = name;
  push->add = add;
  push->pushed = std::move(tree->data);
  const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(*block));
  push->pushed_metadata =
      std::make_shared<const Source>(std::vector<Source::Piece>{Source::Piece(*kept)}, kept);
  core_->start(push);
  const Result<Fetched> done = core_->wait(push, CallerDriven::after(timeout));
  if (!done) return std::unexpected(done.error());
  return done->version;
}

Result<void> Peer::done(std::string_view name, const Fetched& with, std::string_view word,
                        std::chrono::nanoseconds timeout) {
  return done(name, with.version, with.generation, word, timeout);
}

Result<void> Peer::done(std::string_view name, std::uint64_t version, std::uint64_t generation,
                        std::string_view word, std::chrono::nanoseconds timeout) {
  if (name.empty() || name.size() > most_name_bytes || word.size() > wire::most_word_bytes)
    return fail(Errc::bad_array, "a name has 1 to 1024 bytes, and a word at most 1024");
  auto said = std::make_shared<Fetch>();
  said->name = name;
  said->lease_done.emplace();
  said->lease_done->version = version;
  said->lease_done->generation = generation;
  said->lease_done->name = name;
  said->lease_done->word = word;
  core_->start(said);
  const Result<Fetched> answer = core_->wait(said, CallerDriven::after(timeout));
  if (!answer) return std::unexpected(answer.error());
  return {};
}

Result<std::vector<CatalogueEntry>> Peer::list() {
  const Result<Fetched> names = fetch(names_of_hub);
  if (!names) return std::unexpected(names.error());
  return parse_listing(names->data);
}

std::unique_ptr<Follower> Peer::follow(std::string_view name, std::uint64_t newer_than,
                                       std::uint64_t generation, std::uint32_t ahead) {
  return std::unique_ptr<Follower>(
      new Follower(core_, std::string(name), newer_than, generation, std::clamp(ahead, 1U, wire::slots / 2)));
}

Result<int> Peer::descriptor() { return core_->descriptor(); }
std::uint64_t Peer::generation() const { return core_->generation(); }
PeerStats Peer::stats() const { return core_->stats(); }

}  // namespace weir::tensor
