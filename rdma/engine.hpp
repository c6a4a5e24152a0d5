// Runs RDMA inside an asio::io_context: one per io_context, made by Engine::open and owned by the io_context.
//
// It owns the connection-management channel, the devices (protection domain, memory pool, completion queues)
// and all connections. Completions of all connections arrive in one queue, which the engine polls from a
// handler of the io_context, so plain io.run() works:
//   - while there is traffic it polls: `spin_tries` times (vain_tries.hpp), then lets other handlers, sockets
//   and other processes run;
//   - after `idle_spin` without a completion it asks the device to signal, looks once more, and sleeps
//   (poll_policy.hpp).
// Callbacks and operations of streams run straight from there. run() returns when no stream or acceptor is
// open.
//
// Threading: an engine, its streams and its acceptors belong to the one thread that runs the io_context. A
// program may have an engine in each of several threads; each has its own devices, pool included.
#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "rdma/device/device.hpp"
#include "rdma/engine/connection_host.hpp"
#include "rdma/engine/connection_life.hpp"
#include "rdma/engine/trespass.hpp"
#include "rdma/provider.hpp"
#include "rdma/settings.hpp"
#include "rdma/verbs/cm.hpp"
#include "waiting/poll_policy.hpp"

namespace weir::rdma {

struct EngineStats {
  std::uint32_t connections = 0;  // open now, including those that are closing
  std::uint64_t connections_made = 0;
  std::uint64_t completions = 0;
  std::uint64_t rounds = 0;      // times the poll handler ran
  std::uint64_t sleeps = 0;      // times it armed the queue and stopped
  std::uint64_t wake_ups = 0;    // times the device woke it
  std::uint32_t leaving = 0;     // ended, but kept because a stopped peer may still write there
  MemoryPoolStats pool;          // of all devices together
  SharedReceivesStats shared;    // likewise
  std::uint64_t trespasses = 0;  // accesses that peers were refused, at all engines of the program
};

class Engine final : public asio::execution_context::service, public ConnectionHost {
 public:
  using key_type = Engine;  // how the io_context finds it
  static asio::execution_context::id id;

  // The libraries must be loaded; `provider` proves it. Opening a second engine on one io_context is a bug of
  // the caller.
  static Result<Engine*> open(asio::io_context& io, const Provider& provider,
                              const EngineSettings& settings = {});

  Engine(asio::execution_context& context, asio::io_context& io, EventChannel channel,
         const EngineSettings& settings);
  ~Engine() override;

  // Opens an engine in another thread, with the settings of `like`, whose existence proves that the libraries
  // are loaded.
  static Result<Engine*> open_beside(const Engine& like, asio::io_context& io);

  asio::io_context& io() override { return io_; }
  EngineStats stats() const;

  // For connections, listeners and streams.

  // Takes in a connection of any protocol. `make` makes it for the tag that it is to have; it is ticked at
  // least every `keepalive`.
  using MakeConnection = std::function<std::unique_ptr<ConnectionLife>(std::uint64_t tag)>;
  Result<ConnectionLife*> admit(const MakeConnection& make, std::chrono::milliseconds keepalive);
  Result<Device*> device_for(ibv_context* context) override;
  Result<CmId> make_id() override;
  // Moves the events of another engine's identifier to this engine. Call it from that engine's thread.
  bool adopt(const CmId& other) { return rdma_migrate_id(other.get(), cm_channel_.get()) == 0; }
  void kick() override;
  void mark_dirty(ConnectionLife& connection) override;
  void await_empty(ConnectionLife& connection) override;
  void await_leave(ConnectionLife& connection) override {
    leaving_.push_back(&connection);
    kick();
  }
  void discard(ConnectionLife& connection) override;
  void connection_ended() override { closed(); }
  AccessErrors& access_errors() override { return guard_->errors; }
  void on_trespass(const Endpoint& local, const Endpoint& remote) override;
  // Whether a connection from there is to be rejected for what peers tried from there.
  bool is_shut(const Endpoint& remote) { return guard_->trespasses.is_shut(remote, now()); }
  void listener_opened() { opened(); }
  void listener_closed() { closed(); }
  // Whether it keeps the io_context from sleeping because there was work just now.
  bool awake() const { return polling_; }
  // Null if the connection was discarded.
  ConnectionLife* find(std::uint64_t tag);

 private:
  struct Watch;  // a descriptor of a device or of the event channel, watched while anything is open

  // What the engines of one program share.
  struct Guard {
    AccessErrors errors;
    Trespasses trespasses;
  };

  static Result<Engine*> open(asio::io_context& io, const EngineSettings& settings,
                              std::shared_ptr<Guard> guard);
  // A slot in the table for a connection still to be made; its tag is make_tag(slot, generation).
  Result<std::uint32_t> take_slot();
  void keep(std::uint32_t slot, std::unique_ptr<ConnectionLife> connection,
            std::chrono::milliseconds keepalive);
  void shutdown() override;
  void opened();
  void closed();
  void watch(Watch& watch);
  void on_device_signal(Device& device);
  void on_cm_events();
  void start_tick();
  void on_tick();

  void poll_round();
  bool poll_for_a_while();
  // Returns true if there was anything to do.
  bool poll_once();
  bool poll(Device::Queue& queue);
  bool poll_shared(Device::Queue& queue);
  void seen_empty(Device::Queue& queue);
  void see_off();
  void keep_for_ever();
  void run_notifications();
  void sweep();
  bool fell_asleep();

  asio::io_context& io_;
  EngineSettings settings_;
  std::shared_ptr<Guard> guard_;
  EventChannel cm_channel_;
  std::vector<std::shared_ptr<Device>> devices_;  // shared: kept messages of channels hold their devices, too
  std::vector<std::unique_ptr<Watch>> watches_;
  asio::steady_timer tick_;

  // Connections by slot; a tag is (generation << 24 | slot).
  struct Slot {
    std::unique_ptr<ConnectionLife> connection;
    std::uint32_t generation = 0;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<ConnectionLife*> dirty_;
  std::vector<ConnectionLife*> notifying_;
  std::vector<ConnectionLife*> awaiting_empty_;
  std::vector<ConnectionLife*> leaving_;
  std::vector<std::unique_ptr<ConnectionLife>> discarded_;

  std::uint32_t open_ = 0;  // connections and listeners
  bool polling_ = false;    // the poll handler is queued or runs
  bool busy_ = false;       // something was posted since the last round
  bool in_round_ = false;
  bool slow_tries_ = false;  // in the last round (VainTries::slow)
  bool shut_down_ = false;
  waiting::PollPolicy policy_;
  std::chrono::milliseconds tick_period_{1000};
  EngineStats stats_;
};

// A connection as a cancellation slot names it: it may be gone before the waiting operation learns of that.
template <class Life>
class MaybeGone {
 public:
  MaybeGone(Engine& engine, const Life& life) : engine_(&engine), tag_(life.tag()) {}
  template <class Action>
  void if_there(Action action) const {
    if (auto* life = static_cast<Life*>(engine_->find(tag_)); life != nullptr) action(*life);
  }

 private:
  Engine* engine_;
  std::uint64_t tag_;
};

}  // namespace weir::rdma
