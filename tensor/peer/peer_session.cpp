#include "tensor/peer/peer_session.hpp"

#include <algorithm>
#include <utility>

namespace weir::tensor {
PeerSession::PeerSession(const PeerLimits& limits, std::string token, SpareMemory& memory, PeerStats& stats,
                         Owner& owner)
    : limits_(limits), memory_(memory), stats_(stats), owner_(owner), admission_(std::move(token)) {}

PeerSession::~PeerSession() {
  if (!ended_) on_end(Error{Errc::closed, "the peer was closed", 0});
}

void PeerSession::broke(std::string what) { break_off(Error{Errc::protocol, std::move(what), 0}); }

void PeerSession::break_off(const Error& cause) {
  if (link_ != nullptr) link_->break_off(cause);
}

// --- sending requests

void PeerSession::start(FetchPtr fetch) {
  if (ended_) {
    told_ = true;
    return finish(fetch, *ended_);
  }
  queued_.push_back(std::move(fetch));
  start_waiting();
}

void PeerSession::ask_in() {
  if (!admission_.wants_token()) return owner_.on_admitted();
  link_->send(admission_.hello(fresh_nonce()));
}

void PeerSession::on(const wire::Auth& step) {
  const Result<std::optional<wire::Auth>> next = admission_.on(step, link_->generation());
  if (next && *next) return link_->send(**next);
  if (next) return owner_.on_admitted();
  not_admitted_ = next.error();
  break_off(next.error());
}

void PeerSession::up() {
  up_ = true;
  start_waiting();
}

void PeerSession::start_waiting() {
  while (up_ && !queued_.empty() && !ended_) {
    const auto free = std::ranges::find(slots_, nullptr);
    if (free == slots_.end()) return;
    FetchPtr fetch = std::move(queued_.front());
    queued_.pop_front();
    ask(std::move(fetch), static_cast<std::uint32_t>(free - slots_.begin()));
  }
}

void PeerSession::ask(FetchPtr fetch, std::uint32_t slot) {
  Fetch& asked = *fetch;
  asked.index = ++uses_[slot] * wire::slots + slot;
  asked.stage = Fetch::Stage::asked;
  slots_[slot] = fetch;
  if (asked.pushed != nullptr) return ask_to_push(asked);
  if (asked.lease_done) {
    asked.lease_done->index = asked.index;
    return link_->send(*asked.lease_done);
  }
  wire::Request request{.index = asked.index,
                        .wait = asked.wait,
                        .follow = asked.follow,
                        .newer_than = asked.newer_than,
                        .generation = link_->generation(),
                        .name = asked.name};
  // Version numbers of another hub mean nothing to this one, so any version is new.
  if (asked.generation != 0 && asked.generation != link_->generation()) request.newer_than = 0;
  if (const auto known = known_.find(asked.name); known != known_.end() && known->second.name_id != 0) {
    request.name_id = known->second.name_id;
    request.name.clear();
    // If `out` does not fit the known metadata, ask without a destination: the hub may have changed them.
    if (known->second.metadata != nullptr && make_room(asked, known->second.metadata)) {
      const Result<wire::Memory> to = link_->expect(asked.index, asked.fetched.data);
      if (!to && !link_->is_up()) return;  // on_end() follows, and says why
      if (!to) return finish(fetch, to.error());
      request.to = *to;
      request.metadata_id = asked.metadata_id = known->second.metadata_id;
      request.locate = reads_itself(asked);
      tell_parts(asked);
    }
  }
  link_->send(request);
}

void PeerSession::tell_parts(const Fetch& fetch) {
  for (std::span<const Extent> rest(fetch.extents); !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), wire::most_listed_extents));
    link_->send(wire::Parts{fetch.index, {some.begin(), some.end()}});
    rest = rest.subspan(some.size());
  }
}

bool PeerSession::reads_itself(const Fetch& fetch) const {
  const std::size_t bytes = fetch.fetched.data.size();
  // A follower's versions are written by the hub, without any action on our side.
  return link_->can_read() && !fetch.follow && bytes > 0 && bytes >= limits_.read_from_bytes;
}

Result<void> PeerSession::make_room(Fetch& fetch, std::shared_ptr<const Metadata> metadata) {
  if (!fetch.rows.empty()) {
    Result<Cut> made = cut(*metadata, fetch.rows);
    if (!made) return fail(made.error().code, "'" + fetch.name + "': " + made.error().what);
    fetch.extents = std::move(made->extents);
    metadata = std::make_shared<const Metadata>(std::move(made->metadata));
  }
  if (metadata->data_bytes > limits_.max_bytes)
    return fail(Errc::too_much, "'" + fetch.name + "' has " + std::to_string(metadata->data_bytes) +
                                    " bytes, more than this peer takes (max_bytes)");
  const auto bytes = static_cast<std::size_t>(metadata->data_bytes);
  if (fetch.out) {
    const Out& out = *fetch.out;
    const bool single = metadata->tensors.size() == 1;
    if (!single || metadata->tensors[0].dtype != out.dtype || metadata->tensors[0].shape != out.shape ||
        out.memory.size() != bytes)
      return fail(Errc::shape_mismatch,
                  "'" + fetch.name + "' is " +
                      (single ? description(metadata->tensors[0].dtype, metadata->tensors[0].shape)
                              : "a tree of " + std::to_string(metadata->tensors.size())) +
                      ", and out is " + description(out.dtype, out.shape));
    fetch.fetched.data = out.memory;
  } else if (fetch.fetched.memory == nullptr || fetch.fetched.data.size() != bytes) {
    Result<SpareMemory::Taken> taken = memory_.take(bytes);
    if (!taken) return std::unexpected(taken.error());
    fetch.fetched.data = taken->bytes;
    fetch.fetched.memory = std::move(taken->owner);
  }
  fetch.fetched.metadata = std::move(metadata);
  return {};
}

void PeerSession::cancel(Fetch& fetch) {
  if (fetch.done || fetch.cancelled) return;
  fetch.cancelled = true;
  if (fetch.stage == Fetch::Stage::queued) {
    const auto found =
        std::ranges::find_if(queued_, [&](const FetchPtr& each) { return each.get() == &fetch; });
    if (found == queued_.end()) return;
    const FetchPtr gone = std::move(*found);
    queued_.erase(found);
    return finish(gone, Error{Errc::timed_out, "'" + fetch.name + "' did not come in time", 0});
  }
  // A push that is being transferred ends by itself soon: the hub reports whether it became a version.
  if (fetch.pushed != nullptr && fetch.stage != Fetch::Stage::asked) return;
  if (link_ != nullptr) link_->send(wire::Cancel{fetch.index});
}

void PeerSession::ask_to_push(const Fetch& push) {
  wire::Push message{.index = push.index,
                     .add = push.add,
                     .data_bytes = push.pushed->bytes(),
                     .metadata_bytes = push.pushed_metadata->bytes(),
                     .name = push.name};
  if (message.metadata_bytes <= wire::most_pushed_metadata)
    if (Result<std::vector<std::byte>> block = push.pushed_metadata->copy(); block)
      message.metadata = std::move(*block);
  link_->send(message);
}

// --- messages and transfers that arrive

// The hub accepts a push: it wants the metadata first if they are long, then the bytes.
void PeerSession::on(const wire::ReRequest& request) {
  const FetchPtr push = under_way(request.index);
  if (push == nullptr || push->pushed == nullptr || push->stage == Fetch::Stage::asked_data ||
      (request.of_metadata && push->stage != Fetch::Stage::asked) || request.locate)
    return broke("a RE_REQUEST without a push");
  if (push->cancelled) return;  // the hub will answer the CANCEL
  const std::shared_ptr<const Source>& source = request.of_metadata ? push->pushed_metadata : push->pushed;
  if (request.to.bytes < source->bytes()) return broke("a destination that is too small");
  push->stage = request.of_metadata ? Fetch::Stage::asked_metadata : Fetch::Stage::asked_data;
  link_->write(Transfer{.source = source,
                        .to = request.to,
                        .record = {.generation = link_->generation(),
                                   .version = 0,
                                   .bytes = source->bytes(),
                                   .index = push->index,
                                   .kind = request.of_metadata ? 1U : 0U}});
}

PeerSession::FetchPtr PeerSession::under_way(std::uint32_t index) const {
  const FetchPtr& fetch = slots_[wire::slot_of(index)];
  return fetch != nullptr && fetch->index == index ? fetch : nullptr;
}

void PeerSession::on_frame(std::span<const std::byte> frame) {
  do {
    const Result<wire::Message> message = wire::take_message(frame);
    if (!message) return broke(message.error().what);
    std::visit([this](const auto& each) { on(each); }, *message);
  } while (!frame.empty() && link_->is_up());
}

void PeerSession::on(const wire::MetadataUpdate& update) {
  const FetchPtr fetch = under_way(update.index);
  if (fetch == nullptr || !fetch->wants_bytes() || fetch->stage != Fetch::Stage::asked)
    return broke("a META_DATA_UPDATE without a request");
  ++stats_.metadata_updates;
  link_->forget(fetch->index);
  if (fetch->cancelled) return;  // the hub will answer the CANCEL
  if (known_.size() >= limits_.most_known_names && !known_.contains(fetch->name)) known_.clear();
  Known& known = known_[fetch->name];
  known.name_id = update.name_id;
  fetch->metadata_id = update.metadata_id;
  if (update.metadata_bytes <= wire::most_inline_metadata) return take_metadata(*fetch, update.metadata);
  if (update.metadata_bytes > std::min(limits_.max_bytes, most_metadata_bytes))
    return broke("metadata of more than 256 MiB, or beyond this peer's max_bytes");
  // Its pages come with the bytes.
  Result<SpareMemory::Taken> block = memory_.take_zeroed(static_cast<std::size_t>(update.metadata_bytes));
  if (!block) return give_up(*fetch, block.error());
  fetch->metadata_block = std::move(*block);
  fetch->stage = Fetch::Stage::asked_metadata;
  const Result<wire::Memory> to = link_->expect(fetch->index, fetch->metadata_block.bytes);
  if (!to) return give_up(*fetch, to.error());
  link_->send(wire::ReRequest{.index = fetch->index, .of_metadata = true, .locate = false, .to = *to});
}

void PeerSession::take_metadata(Fetch& fetch, std::span<const std::byte> block) {
  Result<Metadata> parsed = parse_metadata(block);
  if (!parsed) return broke(parsed.error().what);
  auto metadata = std::make_shared<const Metadata>(std::move(*parsed));
  Known& known = known_[fetch.name];
  known.metadata_id = fetch.metadata_id;
  known.metadata = metadata;
  if (Result<void> room = make_room(fetch, std::move(metadata)); !room) return give_up(fetch, room.error());
  ask_again(fetch);
}

void PeerSession::ask_again(Fetch& fetch) {
  fetch.stage = Fetch::Stage::asked_data;
  const Result<wire::Memory> to = link_->expect(fetch.index, fetch.fetched.data);
  if (!to) return give_up(fetch, to.error());
  tell_parts(fetch);
  link_->send(
      wire::ReRequest{.index = fetch.index, .of_metadata = false, .locate = reads_itself(fetch), .to = *to});
}

// The hub still holds the version for us, so the slot stays in use until it has answered the CANCEL. The
// caller need not wait for that: no memory of its is expected any more.
void PeerSession::give_up(Fetch& fetch, Error why) {
  if (!link_->is_up()) return;  // on_end() follows, and says why
  fetch.stage = Fetch::Stage::asked_data;
  fetch.cancelled = true;
  link_->forget(fetch.index);
  link_->send(wire::Cancel{fetch.index});
  tell(fetch, std::move(why));
}

void PeerSession::tell(Fetch& fetch, Error why) {
  fetch.fetched.memory = nullptr;
  fetch.fetched.data = {};
  fetch.failed = std::move(why);
  fetch.done.store(true, std::memory_order_release);
  owner_.on_finished();
}

void PeerSession::on(const wire::Location& location) {
  const FetchPtr fetch = under_way(location.index);
  if (fetch == nullptr || !fetch->wants_bytes() ||
      (fetch->stage != Fetch::Stage::asked && fetch->stage != Fetch::Stage::asked_data))
    return broke("a LOCATION without a request");
  if (fetch->cancelled) return;  // the hub will answer the CANCEL
  fetch->stage = Fetch::Stage::reading;
  fetch->fetched.version = location.version;
  if (Result<void> reads = link_->read(location.index, location.sources); !reads)
    return broke(reads.error().what);
}

void PeerSession::on_read(std::uint32_t index) {
  const FetchPtr fetch = under_way(index);
  if (fetch == nullptr || fetch->stage != Fetch::Stage::reading) return;
  if (!fetch->superseded && !fetch->cancelled) link_->send(wire::Done{index});
  stats_.read_bytes += fetch->fetched.data.size();
  // A cancelled fetch keeps its slot until the hub has answered the CANCEL.
  if (fetch->cancelled && !fetch->superseded) {
    fetch->stage = Fetch::Stage::asked_data;
    return;
  }
  finish(fetch, std::nullopt);
}

void PeerSession::on_written(const wire::Record& record) {
  const FetchPtr fetch = under_way(record.index);
  if (fetch == nullptr || !fetch->wants_bytes()) return broke("an unexpected transfer");
  if (record.generation != link_->generation()) return broke("a transfer from another hub");
  if (record.kind == 1) {
    if (fetch->stage != Fetch::Stage::asked_metadata || record.bytes != fetch->metadata_block.bytes.size())
      return broke("unexpected metadata");
    const SpareMemory::Taken block = std::exchange(fetch->metadata_block, {});
    if (fetch->cancelled) return;
    return take_metadata(*fetch, block.bytes);
  }
  if (record.kind != 0 || fetch->stage == Fetch::Stage::asked_metadata ||
      record.bytes != fetch->fetched.data.size())
    return broke("a transfer of another length than requested");
  fetch->fetched.version = record.version;
  finish(fetch, std::nullopt);
}

void PeerSession::on(const wire::ErrorStatus& status) {
  if (!up_ && status.index == 0 && status.code == Errc::refused) {
    not_admitted_ = Error{status.code, status.text, link_->generation()};
    return break_off(*not_admitted_);
  }
  const FetchPtr fetch = under_way(status.index);
  if (fetch == nullptr) return;  // it crossed the last of our READs
  if (fetch->stage == Fetch::Stage::reading) {
    fetch->superseded = true;  // if the READs succeed the version is whole; if it is gone they fail
    return;
  }
  if (status.code == Errc::ok && fetch->lease_done) return finish(fetch, std::nullopt);
  if (status.code == Errc::ok && fetch->pushed != nullptr && fetch->stage == Fetch::Stage::asked_data) {
    fetch->fetched.version = status.version;
    return finish(fetch, std::nullopt);
  }
  finish(fetch, Error{status.code == Errc::ok ? Errc::protocol : status.code,
                      "'" + fetch->name + "': " + status.text, link_->generation()});
}

void PeerSession::on_end(const Error& cause) {
  ended_ = not_admitted_ ? *not_admitted_ : cause;
  if (!up_ && !not_admitted_ && cause.code == Errc::peer_gone) ended_->code = Errc::unreachable;
  const bool goes_on = !up_ && owner_.dials_again(*ended_);
  if (Link* link = std::exchange(link_, nullptr); link != nullptr) link->leave();
  if (goes_on) return ended_.reset();
  std::deque<FetchPtr> all = std::move(queued_);
  for (FetchPtr& each : slots_)
    if (each != nullptr) all.push_back(std::exchange(each, nullptr));
  told_ = !all.empty();
  for (const FetchPtr& each : all) {
    Error why = *ended_;
    if (each->superseded)
      why = {Errc::superseded, "'" + each->name + "' was superseded while it was read", 0};
    finish(each, std::move(why));
  }
  owner_.on_ended(*ended_);
}

void PeerSession::finish(const FetchPtr& fetch, std::optional<Error> failed) {
  FetchPtr& slot = slots_[wire::slot_of(fetch->index)];
  if (slot == fetch) {
    if (link_ != nullptr) link_->forget(fetch->index);
    slot = nullptr;
  }
  if (fetch->done) {
    // give_up() has already reported it; only the slot had to be freed.
  } else if (failed) {
    tell(*fetch, std::move(*failed));
  } else {
    fetch->fetched.generation = link_->generation();
    fetch->fetched.metadata_id = fetch->rows.empty() ? fetch->metadata_id : 0;
    if (fetch->pushed != nullptr) {
      ++stats_.pushes;
      stats_.pushed_bytes += fetch->pushed->bytes();
    } else if (!fetch->lease_done) {
      ++stats_.fetches;
      stats_.fetched_bytes += fetch->fetched.data.size();
    }
    fetch->done.store(true, std::memory_order_release);
    owner_.on_finished();
  }
  if (!ended_) start_waiting();
}

}  // namespace weir::tensor
