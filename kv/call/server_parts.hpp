// The server as those see it that run commands: the commands themselves, the log and a primary's stream that
// are executed again, a gateway, MIGRATE. It is the common state, what the server does as a whole, and its
// parts.
//
// The parts are named here and not included: a file includes the parts that it uses, and no server. The
// server makes them and this; everything lives as long as it does. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kv/clients/client_host.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"
#include "kv/core/uncounted_memory.hpp"
#include "kv/resp/request.hpp"

namespace weir::kv {

namespace aof {
class AppendOnly;
}
namespace migration {
class Migrations;
}
namespace repl {
class Replication;
}

class AccessControl;
class Blocking;
class Dialler;
class Effects;
class FunctionLibraries;
class KeysUnderWay;
class Listeners;
class Monitors;
class Notifications;
class PubSub;
class Scripts;
class SlowWork;
class Snapshots;
class Tracking;
class Transports;
class Watches;
enum class NullForm : std::uint8_t;  // call.hpp
enum class Paused : std::uint8_t;    // client_pause.hpp
struct Call;

struct PartReferences {
  PubSub& pubsub;
  Notifications& notifications;
  Tracking& tracking;
  AccessControl& access;
  Monitors& monitors;
  Watches& watches;
  SlowWork& slow_work;
  Blocking& blocking;
  KeysUnderWay& keys_under_way;
  Effects& effects;
  Transports& transports;
  Dialler& dialler;
  Listeners& listeners;
  // Made by the server's constructor, one after the other; never null after it.
  aof::AppendOnly* append_only = nullptr;
  FunctionLibraries* functions = nullptr;
  Snapshots* snapshots = nullptr;
  Scripts* scripts = nullptr;
  migration::Migrations* migrations = nullptr;
  repl::Replication* replication = nullptr;
};

class ServerParts : public ServerCommon, public ServerWhole, public ClientHost, public PartReferences {
 public:
  // Runs a request after a gateway has decided that it is its turn.
  virtual bool execute_here(Client& client, Arguments arguments) = 0;
  virtual void discard_transaction(Client& client) = 0;
  // For blocking commands that found nothing: parks the client. When the command is tried again, leaves it
  // parked. `words`: what is tried again.
  virtual void wait_for(const Call& call, Arguments words, std::vector<std::string> keys,
                        std::int64_t timeout_ms, NullForm null) = 0;
  // Likewise, with the call's own words.
  void wait_for(const Call& call, std::vector<std::string> keys, std::int64_t timeout_ms, NullForm null);
  virtual UncountedMemory uncounted_memory() const = 0;
  // Recomputes everything that depends on the settings.
  virtual void settings_changed() = 0;
  // See ClientPause. `until_ms` is of the steady clock.
  virtual void pause(std::int64_t until_ms, Paused what) = 0;
  virtual void end_pause() = 0;

  bool expires_in_time = true;  // false, for tests: keys expire only when accessed

 protected:
  ServerParts(asio::io_context& context, Settings initial, Surroundings given, Strangers::Close close_late,
              const PartReferences& parts)
      : ServerCommon(context, std::move(initial), std::move(given), std::move(close_late)),
        PartReferences(parts) {}
  ~ServerParts() = default;
};

}  // namespace weir::kv
