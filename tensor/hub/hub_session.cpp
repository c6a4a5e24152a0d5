#include "tensor/hub/hub_session.hpp"

#include <algorithm>
#include <utility>

namespace weir::tensor {
namespace {
constexpr std::size_t most_followed = 1024;  // for each connection

// `places` of the source's pieces, cut to the extents.
std::vector<wire::Memory> cut_places(const Source& source, std::span<const wire::Memory> places,
                                     std::span<const Extent> extents) {
  std::vector<wire::Memory> made;
  for_each_part(source.sizes(), extents, [&](std::size_t piece, std::uint64_t offset, std::uint64_t bytes) {
    made.push_back({places[piece].address + offset, bytes, places[piece].rkey});
  });
  return made;
}
}  // namespace

HubSession::HubSession(Link& link, Shared& shared, std::function<void(HubSession&)> gone)
    : link_(&link),
      shared_(shared),
      gone_(std::move(gone)),
      number_(shared.stats.connections_made),
      admission_(shared.access, shared.generation,
                 link.is_certified() || is_of_this_host(link.remote().address())),
      pushes_(link, shared.pushes) {
  ++shared_.stats.connections;
  ++shared_.stats.connections_made;
}

HubSession::~HubSession() {
  for (Pending& each : pending_) set(each, State::free);
  --shared_.stats.connections;
  if (link_ == nullptr) return;
  link_->settle();
  link_->leave();
}

void HubSession::set(Pending& pending, State state) {
  if (pending.state == State::waiting) --shared_.waiting;
  if (state == State::waiting) ++shared_.waiting;
  pending.state = state;
  if (state != State::free) return;
  pending.version = nullptr;
  pending.extents = {};
}

void HubSession::broke(std::string what) {
  ++shared_.stats.broken;
  link_->break_off(Error{Errc::protocol, std::move(what), 0});
}

void HubSession::on_frame(std::span<const std::byte> frame) {
  ++shared_.stats.frames;
  do {
    const Result<wire::Message> message = wire::take_message(frame);
    if (!message) return broke(message.error().what);
    std::visit([this](const auto& each) { on(each); }, *message);
  } while (!frame.empty() && link_->is_up());
}

HubSession::Pending* HubSession::pending(std::uint32_t index) {
  Pending& slot = pending_[wire::slot_of(index)];
  return slot.state != State::free && slot.request.index == index ? &slot : nullptr;
}

// Comes before the request or, after a META_DATA_UPDATE, before the RE_REQUEST that it belongs to.
void HubSession::on(const wire::Parts& parts) {
  if (!admission_.admits()) return;  // the request is turned away
  Pending& slot = pending_[wire::slot_of(parts.index)];
  const bool offered = slot.state == State::offered && slot.request.index == parts.index;
  if (slot.state != State::free && !offered) return broke("PARTS of a request that is answered already");
  if (slot.extents_of != parts.index) slot.extents.clear();
  slot.extents_of = parts.index;
  if (slot.extents.size() + parts.extents.size() > most_extents)
    return broke("PARTS of more than " + std::to_string(most_extents) + " extents");
  slot.extents.insert(slot.extents.end(), parts.extents.begin(), parts.extents.end());
}

std::optional<std::uint64_t> HubSession::wanted_bytes(const Pending& slot) {
  const std::uint64_t all = slot.version->data->bytes();
  return slot.extents.empty() ? all : bytes_of(slot.extents, all);
}

void HubSession::on(const wire::Request& request) {
  Pending& slot = pending_[wire::slot_of(request.index)];
  if (slot.state != State::free || pushes_.uses_slot_of(request.index))
    return broke("a request in a slot that is in use");
  if (!admission_.admits()) return turn_away(request.index);
  ++shared_.stats.requests;
  link_->settle();
  slot.request = request;
  if (slot.extents_of != request.index) slot.extents.clear();
  // Version numbers from another hub mean nothing here.
  if (request.generation != shared_.generation) {
    slot.request.newer_than = 0;
    slot.request.metadata_id = 0;
    if (request.name_id != 0) return refuse(slot, Errc::peer_gone, "the request is for another hub");
  }
  set(slot, State::waiting);  // before looking, so that a concurrent publisher counts this request
  try_answer(slot);
}

bool HubSession::try_answer(Pending& slot) {
  const wire::Request& request = slot.request;
  // Listings get version numbers that no catalogue uses, so an old list never passes for a newer one.
  if (request.name == names_of_hub) {
    const std::uint64_t number = ++shared_.listings | std::uint64_t{1} << 63;
    answer(slot, {0, shared_.catalogue.listing(number)});
    return true;
  }
  const Catalogue::Found found =
      request.name_id != 0 ? shared_.catalogue.find(request.name_id) : shared_.catalogue.find(request.name);
  if (found.newest != nullptr && found.newest->number > seen_by(request, found.name_id)) {
    remember(request, found);
    answer(slot, found);
    return true;
  }
  if (request.wait) return false;
  if (found.newest == nullptr)
    refuse(slot, Errc::not_published, "the hub has no '" + request.name + "'");
  else
    refuse(slot, Errc::timed_out, "there is no version newer than " + std::to_string(request.newer_than));
  return true;
}

std::uint64_t HubSession::seen_by(const wire::Request& request, std::uint32_t name_id) const {
  if (!request.follow) return request.newer_than;
  const auto known = followed_.find(name_id);
  return std::max(request.newer_than, known != followed_.end() ? known->second : 0);
}

// If an entry is dropped, the follower may get a version twice; it ignores the second.
void HubSession::remember(const wire::Request& request, const Catalogue::Found& found) {
  if (!request.follow) return;
  if (followed_.size() >= most_followed && !followed_.contains(found.name_id)) followed_.clear();
  followed_[found.name_id] = found.newest->number;
}

void HubSession::answer(Pending& slot, const Catalogue::Found& found) {
  slot.version = found.newest;
  const Version& version = *slot.version;
  const bool known = slot.request.metadata_id == version.metadata_id;
  const std::optional<std::uint64_t> wanted = wanted_bytes(slot);
  if (known && !wanted) return broke("PARTS beyond the version's bytes");
  if (known && slot.request.to.bytes >= *wanted) {
    if (!slot.request.locate || !locate(slot)) transfer(slot, slot.request.to, false);
    return;
  }
  ++shared_.stats.metadata_updates;
  slot.extents.clear();  // they were for other metadata
  set(slot, State::offered);
  wire::MetadataUpdate update{.index = slot.request.index,
                              .name_id = found.name_id,
                              .version = version.number,
                              .metadata_id = version.metadata_id,
                              .data_bytes = version.data->bytes(),
                              .metadata_bytes = version.metadata_source->bytes(),
                              .metadata = {}};
  if (update.metadata_bytes <= wire::most_inline_metadata)
    for (const Source::Piece& each : version.metadata_source->pieces())
      update.metadata.insert(update.metadata.end(), each.begin(), each.end());
  link_->send(update);
}

void HubSession::on(const wire::ReRequest& request) {
  Pending* slot = pending(request.index);
  if (slot == nullptr) return;  // superseded: an ERROR_STATUS is on its way to the peer
  if (slot->state != State::offered) return broke("a RE_REQUEST without a META_DATA_UPDATE");
  const Version& version = *slot->version;
  const std::optional<std::uint64_t> wanted =
      request.of_metadata ? version.metadata_source->bytes() : wanted_bytes(*slot);
  if (!wanted) return broke("PARTS beyond the version's bytes");
  if (request.to.bytes < *wanted) return broke("a destination that is too small");
  if (!request.of_metadata && request.locate && locate(*slot)) return;
  transfer(*slot, request.to, request.of_metadata);
}

// After a transfer of metadata the request stays open for the data; after the data it is done.
void HubSession::transfer(Pending& slot, const wire::Memory& to, bool of_metadata) {
  const VersionPtr version = slot.version;
  const std::shared_ptr<const Source>& source = of_metadata ? version->metadata_source : version->data;
  const std::uint32_t index = slot.request.index;
  const std::uint64_t bytes = of_metadata ? source->bytes() : wanted_bytes(slot).value_or(0);
  std::vector<Extent> extents;
  if (!of_metadata) {
    extents = std::move(slot.extents);
    set(slot, State::free);
  }
  if (!of_metadata && version->lease != nullptr) version->lease->was_sent();
  ++shared_.stats.written;
  shared_.stats.written_bytes += bytes;
  // The source shares ownership of the version, so the data live until they are sent.
  link_->write(Transfer{.source = std::shared_ptr<const Source>(version, source.get()),
                        .extents = std::move(extents),
                        .to = to,
                        .record = {.generation = shared_.generation,
                                   .version = version->number,
                                   .bytes = bytes,
                                   .index = index,
                                   .kind = of_metadata ? 1U : 0U}});
}

// Returns false if the peer cannot read this version itself.
bool HubSession::locate(Pending& slot) {
  Result<std::vector<wire::Memory>> places = link_->expose(*slot.version->data);
  if (!places) return false;
  if (!slot.extents.empty()) places = cut_places(*slot.version->data, *places, slot.extents);
  if (places->size() > wire::most_sources) return false;
  if (slot.version->lease != nullptr) slot.version->lease->was_sent();
  ++shared_.stats.located;
  set(slot, State::located);
  link_->send(wire::Location{slot.request.index, slot.version->number, std::move(*places)});
  return true;
}

void HubSession::on(const wire::Cancel& cancel) {
  if (pushes_.has(cancel.index)) return pushes_.cancel(cancel.index);
  if (Pending* slot = pending(cancel.index)) refuse(*slot, Errc::timed_out, "cancelled");
}

void HubSession::on(const wire::Push& push) {
  if (pending_[wire::slot_of(push.index)].state != State::free || pushes_.uses_slot_of(push.index))
    return broke("a push in a slot that is in use");
  if (!admission_.admits()) return turn_away(push.index);
  link_->settle();
  if (const std::string fault = pushes_.on(push); !fault.empty()) broke(fault);
}

void HubSession::on(const wire::Done& done) {
  Pending* slot = pending(done.index);
  if (slot == nullptr || slot->state != State::located) return;  // superseded meanwhile
  set(*slot, State::free);
}

void HubSession::on(const wire::Auth& step) {
  const Result<wire::Auth> answer = admission_.on(step, fresh_nonce);
  if (answer) return link_->send(*answer);
  if (answer.error().code == Errc::protocol) return broke(answer.error().what);
  ++shared_.stats.refused;
  link_->send(wire::ErrorStatus{0, answer.error().code, 0, answer.error().what});
}

void HubSession::on(const wire::LeaseDone& done) {
  if (pending_[wire::slot_of(done.index)].state != State::free || pushes_.uses_slot_of(done.index))
    return broke("a LEASE_DONE in a slot that is in use");
  if (!admission_.admits()) return turn_away(done.index);
  link_->settle();
  const Result<void> how = done.generation != shared_.generation
                               ? fail(Errc::peer_gone, "it was lent by another hub")
                               : shared_.leases.done(done.name, done.version, number_, done.word);
  const Error answer = how ? Error{} : how.error();
  link_->send(wire::ErrorStatus{done.index, answer.code, done.version, answer.what});
}

void HubSession::turn_away(std::uint32_t index) {
  ++shared_.stats.refused;
  const Error why = admission_.refusal();
  link_->send(wire::ErrorStatus{index, why.code, 0, why.what});
}

void HubSession::refuse(Pending& slot, Errc code, std::string text) {
  const std::uint64_t version = slot.version != nullptr ? slot.version->number : 0;
  set(slot, State::free);
  link_->send(wire::ErrorStatus{slot.request.index, code, version, std::move(text)});
}

void HubSession::look_again() {
  for (Pending& each : pending_) {
    if (each.state == State::waiting) try_answer(each);
    if (each.version == nullptr || !each.version->revoked) continue;
    if (each.state != State::offered && each.state != State::located) continue;
    ++shared_.stats.superseded;
    refuse(each, Errc::superseded,
           "version " + std::to_string(each.version->number) + " was superseded before it was read");
  }
}

void HubSession::on_written(const wire::Record& record) {
  if (const std::string fault = pushes_.on_written(record); !fault.empty()) broke(fault);
}
void HubSession::on_read(std::uint32_t) {}

void HubSession::on_end(const Error& cause) {
  if (cause.code == Errc::protocol) ++shared_.stats.broken;
  const std::function<void(HubSession&)> gone = std::move(gone_);
  gone(*this);
}

}  // namespace weir::tensor
