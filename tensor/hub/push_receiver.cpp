#include "tensor/hub/push_receiver.hpp"

#include <utility>

namespace weir::tensor {
namespace {

// What a version and its name cost beside their bytes.
constexpr std::uint64_t overhead_bytes = 1024;

// What a pushed version owns: its memory, and its share of the budgets.
struct Kept {
  std::shared_ptr<void> memory;
  Charge of_hub, of_peer;
};

std::string quoted(const std::string& name) { return "'" + name + "'"; }

}  // namespace

bool PushReceiver::has(std::uint32_t index) const {
  const std::optional<Incoming>& slot = slots_[wire::slot_of(index)];
  return slot && slot->index == index;
}

std::optional<Error> PushReceiver::reason_against(const wire::Push& push) const {
  if (!shared_.rules.takes(push.name))
    return Error{Errc::refused, "the hub takes no pushes of " + quoted(push.name) + " (push_names)", 0};
  const auto from = link_.remote().address();
  if (!shared_.rules.admits(from))
    return Error{Errc::refused, "the hub takes no pushes from " + from.to_string() + " (push_from)", 0};
  if (push.data_bytes > most_data_bytes || push.metadata_bytes > most_metadata_bytes)
    return Error{Errc::too_much, quoted(push.name) + " has more than 64 TiB, or 256 MiB of names and shapes",
                 0};
  return std::nullopt;
}

std::string PushReceiver::on(const wire::Push& push) {
  if (const std::optional<Error> against = reason_against(push)) {
    answer(push.index, *against);
    return {};
  }
  Incoming incoming{.index = push.index, .add = push.add, .name = push.name, .data_bytes = push.data_bytes};
  // The catalogue keeps metadata twice.
  const std::uint64_t holds = push.data_bytes + 2 * push.metadata_bytes + push.name.size() + overhead_bytes;
  if (const std::optional<Error> against = charge(incoming, holds)) {
    answer(push.index, *against);
    return {};
  }
  Incoming& slot = slots_[wire::slot_of(push.index)].emplace(std::move(incoming));
  shared_.begun();
  if (push.metadata_bytes <= wire::most_pushed_metadata) return take_metadata(slot, push.metadata);
  Result<SpareMemory::Taken> block =
      shared_.memory->take_zeroed(static_cast<std::size_t>(push.metadata_bytes));
  if (!block) {
    answer(push.index, block.error());
    return {};
  }
  slot.block = std::move(*block);
  ask_for(slot, slot.block.bytes, true);
  return {};
}

// Takes the push's part of all budgets; pushes that stand still make room for it in the hub's.
std::optional<Error> PushReceiver::charge(Incoming& incoming, std::uint64_t bytes) {
  const auto beyond = [&](std::string_view whose, std::uint64_t used, std::uint64_t most) {
    return Error{Errc::too_much,
                 quoted(incoming.name) + " needs " + std::to_string(bytes) + " bytes, and " +
                     std::string(whose) + " hold " + std::to_string(used) + " of " + std::to_string(most),
                 0};
  };
  incoming.of_peer = Charge(budget_, bytes);
  if (!incoming.of_peer)
    return beyond("this peer's pushes (push_bytes_per_peer)", budget_->used(), budget_->most());
  PushesUnderWay& all = shared_.under_way;
  const std::string source = transport::source_of(link_.remote().address().to_string());
  if (!all.has_share_for(source, bytes))
    return beyond("unfinished pushes from its address (half of push_bytes)", all.bytes_of(source),
                  all.limits().bytes_per_source);
  const PushesUnderWay::TimePoint now = shared_.now();
  if (all.full() && !all.make_room(now))
    return Error{Errc::too_much, "the hub receives as many pushes as it can at once", 0};
  incoming.of_hub = Charge(shared_.budget, bytes);
  const bool may_fit = bytes <= shared_.budget->most();
  while (!incoming.of_hub && may_fit && all.make_room(now)) incoming.of_hub = Charge(shared_.budget, bytes);
  if (!incoming.of_hub)
    return beyond("all pushes (push_bytes)", shared_.budget->used(), shared_.budget->most());
  incoming.stay =
      all.enter({.source = source,
                 .bytes = bytes,
                 .arrived = [this, index = incoming.index] { return link_.arrived(index); },
                 .end = [this, index = incoming.index](Error why) { answer(index, std::move(why)); }},
                now);
  return std::nullopt;
}

std::string PushReceiver::take_metadata(Incoming& incoming, std::span<const std::byte> block) {
  Result<Metadata> parsed = parse_metadata(block);
  if (!parsed) return parsed.error().what;
  if (parsed->data_bytes != incoming.data_bytes) return "a push whose metadata describe another size";
  if (const Result<void> sound = incoming.add ? can_be_added(*parsed) : Result<void>(); !sound) {
    answer(incoming.index, sound.error());
    return {};
  }
  // Zeroed, because a peer may end its push without having written all of it, or any.
  Result<SpareMemory::Taken> memory =
      shared_.memory->take_zeroed(static_cast<std::size_t>(incoming.data_bytes));
  if (!memory) {
    answer(incoming.index, memory.error());
    return {};
  }
  incoming.metadata = std::move(*parsed);
  incoming.memory = std::move(*memory);
  ask_for(incoming, incoming.memory.bytes, false);
  return {};
}

void PushReceiver::ask_for(const Incoming& incoming, std::span<std::byte> memory, bool of_metadata) {
  const Result<wire::Memory> to = link_.expect(incoming.index, memory);
  if (!to) return answer(incoming.index, to.error());
  link_.send(
      wire::ReRequest{.index = incoming.index, .of_metadata = of_metadata, .locate = false, .to = *to});
}

std::string PushReceiver::on_written(const wire::Record& record) {
  if (!has(record.index) || slots_[wire::slot_of(record.index)]->adding.is_there())
    return "an unexpected transfer";
  if (record.generation != shared_.generation) return "a push to another hub";
  Incoming& incoming = *slots_[wire::slot_of(record.index)];
  const bool of_metadata = !incoming.metadata.has_value();
  if (record.kind != (of_metadata ? 1U : 0U)) return "a push that ends with another kind of record";
  if (record.bytes != (of_metadata ? incoming.block.bytes.size() : incoming.data_bytes))
    return "a push of another length than announced";
  if (of_metadata) {
    const SpareMemory::Taken block = std::exchange(incoming.block, {});
    return take_metadata(incoming, block.bytes);
  }
  incoming.stay = {};
  if (incoming.add) {
    add(incoming);
    return {};
  }
  Incoming complete = std::move(incoming);
  slots_[wire::slot_of(record.index)].reset();
  publish(std::move(complete), {});
  return {};
}

// The slot stays in use until it is added.
void PushReceiver::add(Incoming& incoming) {
  incoming.adding =
      shared_.sums.enter({.name = incoming.name,
                          .metadata = &*incoming.metadata,
                          .bytes = incoming.memory.bytes,
                          .done = [this, index = incoming.index](const Result<std::uint64_t>& base) {
                            if (!base) return answer(index, base.error());
                            Incoming complete = std::move(*slots_[wire::slot_of(index)]);
                            slots_[wire::slot_of(index)].reset();
                            complete.adding = {};
                            publish(std::move(complete), {.after = *base});
                          }});
}

void PushReceiver::publish(Incoming incoming, const Catalogue::Terms& terms) {
  const std::span<const std::byte> bytes = incoming.memory.bytes;
  auto kept = std::make_shared<Kept>(
      Kept{std::move(incoming.memory.owner), std::move(incoming.of_hub), std::move(incoming.of_peer)});
  auto source = std::make_shared<const Source>(std::vector<Source::Piece>{bytes}, std::move(kept));
  const auto published =
      shared_.catalogue.publish(incoming.name, *incoming.metadata, std::move(source), terms);
  if (!published) return answer(incoming.index, published.error());
  ++shared_.pushes;
  shared_.pushed_bytes += bytes.size();
  answer(incoming.index, Error{}, published->version);
  shared_.published(*published);
}

void PushReceiver::cancel(std::uint32_t index) { answer(index, Error{Errc::timed_out, "cancelled", 0}); }

// Ends a push with the hub's answer.
void PushReceiver::answer(std::uint32_t index, Error what, std::uint64_t version) {
  link_.forget(index);
  if (has(index)) slots_[wire::slot_of(index)].reset();
  link_.send(wire::ErrorStatus{index, what.code, version, std::move(what.what)});
}

}  // namespace weir::tensor
