// Receives the pushes of one peer, on the hub's side.
//
// If name, address and budgets allow a PUSH, the answer is RE_REQUEST: first for the metadata if they are
// long, then for the bytes, which go into new memory that has no readers. The record that ends the transfer
// turns them into a version, as publish() would, and ERROR_STATUS ok carries its number. So a reader never
// sees part of a push, and an unfinished push leaves nothing behind. One that stands still ends
// (pushes_under_way.hpp). A push that is to be added waits for its turn in `sums` first. Threading: the
// link's.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensor/hub/catalogue.hpp"
#include "tensor/hub/push_rules.hpp"
#include "tensor/hub/pushes_under_way.hpp"
#include "tensor/hub/sums.hpp"
#include "tensor/link/link.hpp"
#include "tensor/memory/spare_memory.hpp"

namespace weir::tensor {

class PushReceiver {
 public:
  // Shared by all connections of a hub.
  struct Shared {
    PushRules rules;
    std::shared_ptr<Budget> budget;
    std::uint64_t bytes_per_peer;
    std::shared_ptr<SpareMemory> memory;
    Catalogue& catalogue;
    std::uint64_t generation;
    std::function<void(const Catalogue::Published&)> published;
    PushesUnderWay under_way;
    std::function<PushesUnderWay::TimePoint()> now;
    std::function<void()> begun;  // a push is under way
    Sums sums;
    std::uint64_t pushes = 0, pushed_bytes = 0;
  };

  PushReceiver(Link& link, Shared& shared)
      : link_(link), shared_(shared), budget_(std::make_shared<Budget>(shared.bytes_per_peer)) {}

  bool has(std::uint32_t index) const;
  bool uses_slot_of(std::uint32_t index) const { return slots_[wire::slot_of(index)].has_value(); }

  // How the peer broke the protocol; empty if it did not.
  std::string on(const wire::Push& push);
  std::string on_written(const wire::Record& record);
  void cancel(std::uint32_t index);

 private:
  struct Incoming {
    std::uint32_t index = 0;
    bool add = false;
    std::string name;
    std::uint64_t data_bytes = 0;
    SpareMemory::Taken block = {};          // receives metadata that are too long for a message
    std::optional<Metadata> metadata = {};  // set once they are parsed and the bytes are expected
    SpareMemory::Taken memory = {};
    Charge of_hub = {}, of_peer = {};
    PushesUnderWay::Stay stay = {};
    Sums::Stay adding = {};  // all bytes have come, and are being added
  };

  std::optional<Error> reason_against(const wire::Push& push) const;
  std::optional<Error> charge(Incoming& incoming, std::uint64_t bytes);
  std::string take_metadata(Incoming& incoming, std::span<const std::byte> block);
  void ask_for(const Incoming& incoming, std::span<std::byte> memory, bool of_metadata);
  void add(Incoming& incoming);
  void publish(Incoming incoming, const Catalogue::Terms& terms);
  void answer(std::uint32_t index, Error what, std::uint64_t version = 0);

  Link& link_;
  Shared& shared_;
  std::shared_ptr<Budget> budget_;
  std::array<std::optional<Incoming>, wire::slots> slots_;
};

}  // namespace weir::tensor
