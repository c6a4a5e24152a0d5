// What peers and followers share: the connection to the hub, which is made again after it ended, and the
// callers' threads that do the work. Threading: public functions from any thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "rdma/engine.hpp"
#include "rdma/provider.hpp"
#include "tensor/address.hpp"
#include "tensor/memory/spare_memory.hpp"
#include "tensor/peer/caller_driven.hpp"
#include "tensor/peer/done_descriptor.hpp"
#include "tensor/peer/fetch.hpp"
#include "tensor/peer/peer_session.hpp"
#include "tensor/peer/peer_settings.hpp"

namespace weir::tensor {

class PeerCore final : public PeerSession::Owner {
 public:
  PeerCore(std::string address, const PeerSettings& settings)
      : address_(std::move(address)),
        settings_(settings),
        memory_(std::make_shared<SpareMemory>(settings.spare_bytes)) {}
  ~PeerCore() override;
  PeerCore(const PeerCore&) = delete;
  PeerCore& operator=(const PeerCore&) = delete;

  Result<void> open(const rdma::Result<rdma::Provider>& provider);
  void start(std::shared_ptr<Fetch> fetch);
  // Starts all at once, so that requests share messages; skips those that are done.
  void start_all(std::vector<std::shared_ptr<Fetch>> fetches);
  Result<Fetched> wait(const std::shared_ptr<Fetch>& fetch, CallerDriven::Clock::time_point deadline);
  // Whether one of them is done by the deadline; all of them continue.
  bool wait_any(std::span<const std::shared_ptr<Fetch>> fetches, CallerDriven::Clock::time_point deadline);
  // Cancels a fetch that no caller waits for.
  void drop(std::shared_ptr<Fetch> fetch);
  std::uint64_t generation() const { return generation_; }
  Result<int> descriptor();
  // A fetch was done before it began.
  void announce() {
    if (const DoneDescriptor* known = known_descriptor_) known->signal();
  }
  PeerStats stats();

 private:
  // Below: only in the driving thread.
  void begin(std::shared_ptr<Fetch> fetch);
  void reconnect();
  void dial(Transport by);
  void dial_rdma();
  void on_admitted() override;
  bool dials_again(const Error& cause) override;
  void on_finished() override {
    driven_.progressed();
    announce();
  }
  void on_ended(const Error& cause) override;

  const std::string address_;
  const PeerSettings settings_;
  Address parsed_;
  rdma::Endpoint at_;
  transport::TlsContext tls_;  // none without a tls:// address
  std::shared_ptr<SpareMemory> memory_;
  PeerStats stats_;
  std::atomic<std::uint64_t> generation_ = 0;
  std::atomic<bool> settled_ = false;  // the first attempt to connect succeeded or failed
  Error end_{};                        // why the newest session ended; written before settled_
  CallerDriven driven_;
  rdma::Engine* engine_ = nullptr;
  std::string no_engine_;  // why `engine_` is null
  Transport by_ = Transport::none;
  asio::steady_timer patience_{driven_.io()};  // runs while RDMA is tried and TCP is the fallback
  std::unique_ptr<PeerSession> session_;       // null before the first attempt to connect
  std::mutex describing_;
  std::unique_ptr<DoneDescriptor> descriptor_;                     // under describing_
  std::atomic<const DoneDescriptor*> known_descriptor_ = nullptr;  // the same
};

}  // namespace weir::tensor
