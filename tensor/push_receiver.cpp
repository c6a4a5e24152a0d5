#include "tensor/push_receiver.hpp"

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
  if (push.data_bytes > most_data_bytes || push.metadata_bytes > most_data_bytes)
    return Error{Errc::too_much, quoted(push.name) + " has more than 64 TiB", 0};
  return std::nullopt;
}

std::string PushReceiver::on(const wire::Push& push) {
  if (const std::optional<Error> against = reason_against(push)) {
    answer(push.index, *against);
    return {};
  }
  Incoming incoming{.index = push.index, .name = push.name, .data_bytes = push.data_bytes};
  const std::uint64_t holds = push.data_bytes + push.metadata_bytes + push.name.size() + overhead_bytes;
  incoming.of_peer = Charge(budget_, holds);
  if (incoming.of_peer) incoming.of_hub = Charge(shared_.budget, holds);
  if (!incoming.of_hub) {
    const bool own = !incoming.of_peer;
    const Budget& budget = own ? *budget_ : *shared_.budget;
    answer(push.index, Error{Errc::too_much,
                             quoted(push.name) + " needs " + std::to_string(holds) + " bytes, and " +
                                 (own ? "this peer's" : "all") + " pushes hold " +
                                 std::to_string(budget.used()) + " of " + std::to_string(budget.most()) +
                                 (own ? " (push_bytes_per_peer)" : " (push_bytes)"),
                             0});
    return {};
  }
  Incoming& slot = slots_[wire::slot_of(push.index)].emplace(std::move(incoming));
  if (push.metadata_bytes <= wire::most_pushed_metadata) return take_metadata(slot, push.metadata);
  slot.block.resize(static_cast<std::size_t>(push.metadata_bytes));
  ask_for(slot, slot.block, true);
  return {};
}

std::string PushReceiver::take_metadata(Incoming& incoming, std::span<const std::byte> block) {
  Result<Metadata> parsed = parse_metadata(block);
  if (!parsed) return parsed.error().what;
  if (parsed->data_bytes != incoming.data_bytes) return "a push whose metadata describe another size";
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
  if (!has(record.index)) return "an unexpected transfer";
  if (record.generation != shared_.generation) return "a push to another hub";
  Incoming& incoming = *slots_[wire::slot_of(record.index)];
  const bool of_metadata = !incoming.metadata.has_value();
  if (record.kind != (of_metadata ? 1U : 0U)) return "a push that ends with another kind of record";
  if (record.bytes != (of_metadata ? incoming.block.size() : incoming.data_bytes))
    return "a push of another length than announced";
  if (of_metadata) {
    const std::vector<std::byte> block = std::move(incoming.block);
    return take_metadata(incoming, block);
  }
  Incoming complete = std::move(incoming);
  slots_[wire::slot_of(record.index)].reset();
  publish(std::move(complete));
  return {};
}

void PushReceiver::publish(Incoming incoming) {
  const std::span<const std::byte> bytes = incoming.memory.bytes;
  auto kept = std::make_shared<Kept>(
      Kept{std::move(incoming.memory.owner), std::move(incoming.of_hub), std::move(incoming.of_peer)});
  auto source = std::make_shared<const Source>(std::vector<Source::Piece>{bytes}, std::move(kept));
  const auto published = shared_.catalogue.publish(incoming.name, *incoming.metadata, std::move(source));
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
