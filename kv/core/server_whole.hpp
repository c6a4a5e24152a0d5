// What parts of the server ask of it as a whole.
#pragma once

#include <cstdint>
#include <string_view>

#include "kv/resp/request.hpp"

namespace weir::kv {

class Client;
struct Command;
class ClientPause;
enum class HeldFor : std::uint8_t;  // client_pause.hpp
namespace repl {
struct PlaceInHistory;  // history.hpp
}

class ServerWhole {
 public:
  // All work that no client's request asks for, such as a timer's: it finds the present time, and what it did
  // for clients and replicas leaves when it is over.
  template <class Work>
  void handle(Work&& work) {
    begin_round();
    work();
    end_round();
  }

  // Runs a command that has passed all checks.
  virtual void run(Client& client, const Command& command, Arguments arguments) = 0;
  // Keeps the data within maxmemory, unless something else decides what is evicted; returns false if
  // nothing more can be evicted.
  virtual bool make_room() = 0;
  // For connections, which end the round once all have delivered; other work uses handle().
  virtual void begin_round() = 0;
  virtual void end_round() = 0;
  // Arms the timer so that expired keys, blocked clients, idle clients, handshakes and strangers are handled
  // in time.
  virtual void arm_timer() = 0;
  // Why clients may not change the data now that others replicate it; empty: they may.
  virtual std::string_view write_refusal() const = 0;
  // Why clients may not change the data now that no snapshot of it can be written; empty: they may.
  virtual std::string_view snapshot_refusal() const = 0;
  // The snapshot that was loaded ends there: replicas and the primary can go on from it.
  virtual void restore_history(const repl::PlaceInHistory& place) = 0;
  // Whether CLIENT PAUSE is in force, or writes are held back.
  virtual bool paused() const = 0;
  // CLIENT PAUSE as it is now.
  virtual const ClientPause& client_pause() const = 0;
  // Holds clients' writes back, and whatever else changes data by itself, until they are let go.
  virtual void hold_writes(HeldFor what) = 0;
  virtual void let_writes(HeldFor what) = 0;

 protected:
  ~ServerWhole() = default;
};

}  // namespace weir::kv
