// What parts of the server ask of it as a whole.
#pragma once

#include <cstdint>
#include <string_view>

#include "kv/resp/request.hpp"

namespace weir::kv {

class Client;
struct Command;
enum class HeldFor : std::uint8_t;  // client_pause.hpp

class ServerWhole {
 public:
  // Runs a command that has passed all checks.
  virtual void run(Client& client, const Command& command, Arguments arguments) = 0;
  // Keeps the data within maxmemory, unless something else decides what is evicted; returns false if
  // nothing more can be evicted.
  virtual bool make_room() = 0;
  // Call after work outside of a client's request.
  virtual void end_round() = 0;
  // Arms the timer so that expired keys, blocked clients, idle clients, handshakes and strangers are handled
  // in time.
  virtual void arm_timer() = 0;
  // Why clients may not change the data now that others replicate it; empty: they may.
  virtual std::string_view write_refusal() const = 0;
  // Whether CLIENT PAUSE is in force, or writes are held back.
  virtual bool paused() const = 0;
  // Holds clients' writes back, and whatever else changes data by itself, until they are let go.
  virtual void hold_writes(HeldFor what) = 0;
  virtual void let_writes(HeldFor what) = 0;

 protected:
  ~ServerWhole() = default;
};

}  // namespace weir::kv
