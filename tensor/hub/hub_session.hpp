// A hub's end of the conversation with one peer (docs/tensors.md).
//
// A request waits for a version (waiting), or holds one: while the peer prepares memory for changed metadata
// (offered), or while it reads the version itself (located). During a transfer the link holds the version. A
// peer has at most wire::slots requests and pushes. A peer that breaks the protocol loses its own link and
// affects no other. Threading: the link's.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "tensor/hub/catalogue.hpp"
#include "tensor/hub/push_receiver.hpp"
#include "tensor/link/admission.hpp"
#include "tensor/link/link.hpp"

namespace weir::tensor {

struct HubStats {
  std::uint64_t connections = 0, connections_made = 0;
  std::uint64_t requests = 0;  // without the repeats that follow a META_DATA_UPDATE
  std::uint64_t written = 0;   // transfers that the hub wrote
  std::uint64_t written_bytes = 0;
  std::uint64_t located = 0;  // versions that their readers read themselves
  std::uint64_t metadata_updates = 0;
  std::uint64_t direct_bytes = 0;     // published bytes that are sent from where they lie
  std::uint64_t packed_bytes = 0;     // published bytes of small tensors in trees, copied together
  std::uint64_t superseded = 0;       // readers that fell behind by more than `keep` versions
  std::uint64_t broken = 0;           // links ended because the peer broke the protocol
  std::uint64_t tcp_connections = 0;  // included in `connections`
  std::uint64_t pushes = 0;           // pushes that became versions
  std::uint64_t pushed_bytes = 0;
  std::uint64_t pushed_held_bytes = 0;  // held now by pushed versions and pushes in progress
  std::uint64_t frames = 0;             // received; fewer than messages where peers batch several
  std::uint64_t refused = 0;            // requests and pushes of peers that the hub does not serve
};

class HubSession final : public LinkEvents {
 public:
  // Shared by all sessions of a hub.
  struct Shared {
    const Catalogue& catalogue;
    const std::uint64_t generation;
    std::atomic<std::uint32_t> waiting = 0;  // requests of all peers; publishers check whether it is 0
    PushReceiver::Shared& pushes;
    const AccessSettings& access;
    Leases& leases;
    HubStats stats = {};
    std::uint64_t listings = 0;
  };

  // `gone` runs once, as the last thing; it may destroy the session.
  HubSession(Link& link, Shared& shared, std::function<void(HubSession&)> gone);
  ~HubSession() override;
  HubSession(const HubSession&) = delete;
  HubSession& operator=(const HubSession&) = delete;

  // Call after versions were published or revoked.
  void look_again();

  void on_frame(std::span<const std::byte> frame) override;
  void on_written(const wire::Record& record) override;
  void on_read(std::uint32_t index) override;
  void on_end(const Error& cause) override;

 private:
  enum class State : std::uint8_t { free, waiting, offered, located };
  struct Pending {
    State state = State::free;
    wire::Request request;
    VersionPtr version;
    // What the request with index `extents_of` is for; empty: the whole version.
    std::vector<Extent> extents;
    std::uint32_t extents_of = 0;
  };

  void on(const wire::Parts& parts);
  void on(const wire::Request& request);
  void on(const wire::ReRequest& request);
  void on(const wire::Cancel& cancel);
  void on(const wire::Done& done);
  void on(const wire::Push& push);
  void on(const wire::Auth& step);
  void on(const wire::LeaseDone& done);
  void on(const auto&) { broke("a message that only a hub may send"); }

  Pending* pending(std::uint32_t index);
  // Returns true if the request was answered or refused, so it no longer waits.
  bool try_answer(Pending& pending);
  // Nothing if the peer asks for bytes that the version does not have.
  static std::optional<std::uint64_t> wanted_bytes(const Pending& pending);
  void answer(Pending& pending, const Catalogue::Found& found);
  void transfer(Pending& pending, const wire::Memory& to, bool of_metadata);
  bool locate(Pending& pending);
  void refuse(Pending& pending, Errc code, std::string text);
  // Answers a request or push of a peer that is not admitted.
  void turn_away(std::uint32_t index);
  void set(Pending& pending, State state);
  std::uint64_t seen_by(const wire::Request& request, std::uint32_t name_id) const;
  void remember(const wire::Request& request, const Catalogue::Found& found);
  void broke(std::string what);

  Link* link_;
  Shared& shared_;
  std::function<void(HubSession&)> gone_;
  const std::uint64_t number_;  // tells connections apart
  HubAdmission admission_;
  std::array<Pending, wire::slots> pending_;
  PushReceiver pushes_;
  std::unordered_map<std::uint32_t, std::uint64_t> followed_;  // name id: newest version sent to a follower
};

}  // namespace weir::tensor
