// A reader's end of the conversation with a hub (docs/tensors.md).
//
// Up to wire::slots fetches are in progress at a time; others wait for a slot. The session remembers each
// name's number and newest metadata, so a second fetch can send its destination along and costs one message
// and one write. It trusts nothing that the hub sends: sizes are bounded before memory is allocated, and a
// message that does not fit the conversation ends the link. Threading: the link's.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "tensor/address.hpp"
#include "tensor/link/admission.hpp"
#include "tensor/link/link.hpp"
#include "tensor/memory/spare_memory.hpp"
#include "tensor/peer/fetch.hpp"
#include "tensor/peer/peer_settings.hpp"

namespace weir::tensor {

struct PeerStats {
  std::uint64_t fetches = 0;  // that succeeded
  std::uint64_t fetched_bytes = 0;
  std::uint64_t read_bytes = 0;        // part of fetched_bytes: read by this side itself
  std::uint64_t metadata_updates = 0;  // META_DATA_UPDATEs received
  std::uint64_t connects = 0;
  std::uint64_t pushes = 0;  // that succeeded
  std::uint64_t pushed_bytes = 0;
  std::uint64_t fallbacks = 0;            // to TCP, because RDMA did not answer
  Transport transport = Transport::none;  // the newest connection's
};

class PeerSession final : public LinkEvents {
 public:
  // Called from the link's thread when a fetch is done and when the link ends.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_finished() = 0;
    // The link failed to come up. Return true if another will be tried; fetches wait for it.
    virtual bool dials_again(const Error& cause) = 0;
    virtual void on_ended(const Error& cause) = 0;
    // The hub serves us; up() may be called.
    virtual void on_admitted() = 0;
  };

  // The arguments must outlive the session. Fetches wait until up().
  PeerSession(const PeerLimits& limits, std::string token, SpareMemory& memory, PeerStats& stats,
              Owner& owner);
  ~PeerSession() override;
  PeerSession(const PeerSession&) = delete;
  PeerSession& operator=(const PeerSession&) = delete;

  std::uint64_t generation() const { return link_ != nullptr ? link_->generation() : 0; }
  void set_link(Link& link) { link_ = &link; }
  // The link is up: shows the hub the token, if there is one.
  void ask_in();
  void up();
  // Why the session ended; nothing while it runs.
  const std::optional<Error>& ended() const { return ended_; }

  // The session has ended and reported it: at least one fetch failed with its error, or it was never up. If
  // no fetch was in progress, the next one gets the error, so every lost hub is reported once.
  bool is_over() const { return ended_.has_value() && (told_ || !up_); }

  void start(std::shared_ptr<Fetch> fetch);
  // Makes a fetch end soon: with its result if that is already on the way, else with timed_out.
  void cancel(Fetch& fetch);
  // Ends the link because the hub does not answer, so that it can no longer write to our memory.
  void break_off(const Error& cause);

  void on_frame(std::span<const std::byte> frame) override;
  void on_written(const wire::Record& record) override;
  void on_read(std::uint32_t index) override;
  void on_end(const Error& cause) override;

 private:
  using FetchPtr = std::shared_ptr<Fetch>;
  struct Known {
    std::uint32_t name_id = 0;
    std::uint64_t metadata_id = 0;
    std::shared_ptr<const Metadata> metadata;
  };

  void on(const wire::MetadataUpdate& update);
  void on(const wire::ErrorStatus& status);
  void on(const wire::Location& location);
  void on(const wire::ReRequest& request);
  void on(const wire::Auth& step);
  void on(const auto&) { broke("a message that only a reader may send"); }

  void ask(FetchPtr fetch, std::uint32_t slot);
  void ask_to_push(const Fetch& push);
  void ask_again(Fetch& fetch);
  void tell_parts(const Fetch& fetch);
  bool reads_itself(const Fetch& fetch) const;
  // Prepares memory for `metadata`; an error if they do not match `out`.
  Result<void> make_room(Fetch& fetch, std::shared_ptr<const Metadata> metadata);
  void take_metadata(Fetch& fetch, std::span<const std::byte> block);
  void give_up(Fetch& fetch, Error why);
  void tell(Fetch& fetch, Error why);
  FetchPtr under_way(std::uint32_t index) const;
  void finish(const FetchPtr& fetch, std::optional<Error> failed);
  void start_waiting();
  void broke(std::string what);

  const PeerLimits limits_;
  SpareMemory& memory_;
  PeerStats& stats_;
  Owner& owner_;
  Link* link_ = nullptr;
  bool up_ = false, told_ = false;
  PeerAdmission admission_;
  std::optional<Error> not_admitted_;
  std::optional<Error> ended_;
  std::array<FetchPtr, wire::slots> slots_;
  std::array<std::uint32_t, wire::slots> uses_{};
  std::deque<FetchPtr> queued_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace weir::tensor
