// A hub's end of the conversation with one peer (docs/tensors.md).
//
// A request waits for a version (waiting), or holds one: while the peer makes room for changed metadata
// (offered), or reads it itself (located). What it is sent is held by the link. A peer has at most
// wire::slots requests and pushes; one that breaks the protocol loses its link, and nobody else anything.
// Threading: the link's.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "tensor/catalogue.hpp"
#include "tensor/link.hpp"
#include "tensor/push_receiver.hpp"

namespace weir::tensor {

struct HubStats {
  std::uint64_t connections = 0, connections_made = 0;
  std::uint64_t requests = 0;  // first ones
  std::uint64_t written = 0;   // transfers that the hub wrote
  std::uint64_t written_bytes = 0;
  std::uint64_t located = 0;  // that their readers read themselves
  std::uint64_t metadata_updates = 0;
  std::uint64_t direct_bytes = 0;     // published, and sent from where they lie
  std::uint64_t packed_bytes = 0;     // published in trees of small tensors, and copied together
  std::uint64_t superseded = 0;       // readers that were too slow for `keep`
  std::uint64_t broken = 0;           // links ended because of what a peer sent
  std::uint64_t tcp_connections = 0;  // of the connections
  std::uint64_t pushes = 0;           // that became versions
  std::uint64_t pushed_bytes = 0;
  std::uint64_t pushed_held_bytes = 0;  // that pushed versions, and pushes under way, hold now
  std::uint64_t frames = 0;  // of messages that came: fewer than messages, where peers send several at once
};

class HubSession final : public LinkEvents {
 public:
  // What sessions of a hub share.
  struct Shared {
    const Catalogue& catalogue;
    const std::uint64_t generation;
    std::atomic<std::uint32_t> waiting = 0;  // requests of all peers; a publisher looks whether there are any
    PushReceiver::Shared& pushes;
    HubStats stats = {};
    std::uint64_t listings = 0;
  };

  // `gone` runs once, last; it may destroy the session.
  HubSession(Link& link, Shared& shared, std::function<void(HubSession&)> gone);
  ~HubSession() override;
  HubSession(const HubSession&) = delete;
  HubSession& operator=(const HubSession&) = delete;

  // Versions were published or revoked.
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
  };

  void on(const wire::Request& request);
  void on(const wire::ReRequest& request);
  void on(const wire::Cancel& cancel);
  void on(const wire::Done& done);
  void on(const wire::Push& push);
  void on(const auto&) { broke("a message that only a hub sends came"); }

  Pending* pending(std::uint32_t index);
  // True: it is answered, or has to wait no longer.
  bool try_answer(Pending& pending);
  void answer(Pending& pending, const Catalogue::Found& found);
  void transfer(Pending& pending, const wire::Memory& to, bool of_metadata);
  bool locate(Pending& pending);
  void refuse(Pending& pending, Errc code, std::string text);
  void set(Pending& pending, State state);
  std::uint64_t seen_by(const wire::Request& request, std::uint32_t name_id) const;
  void remember(const wire::Request& request, const Catalogue::Found& found);
  void broke(std::string what);

  Link* link_;
  Shared& shared_;
  std::function<void(HubSession&)> gone_;
  std::array<Pending, wire::slots> pending_;
  PushReceiver pushes_;
  std::unordered_map<std::uint32_t, std::uint64_t> followed_;  // name id: newest version that a follower got
};

}  // namespace weir::tensor
