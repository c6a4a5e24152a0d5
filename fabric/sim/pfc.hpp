// Priority flow control, IEEE 802.1Qbb: a priority group over its threshold stops its peer, which continues
// when it is told to or when the pause expires. A quantum is 512 bit times of the link.
#pragma once

#include <cstdint>

#include "fabric/sim/network_state.hpp"

namespace weir::fabric::sim {

class PfcHost {
 public:
  // A packet may have become ready to leave through this port.
  virtual void kick(std::uint32_t port) = 0;

 protected:
  ~PfcHost() = default;
};

class Pfc {
 public:
  Pfc(NetworkState& net, PfcHost& host) : net_(net), host_(host) {}

  // The group stops its peer, or lets it continue.
  void pause_peer(std::uint32_t port, unsigned priority);
  void resume_peer(std::uint32_t port, unsigned priority);
  void send(std::uint32_t port, unsigned priority, std::uint32_t quanta);
  std::uint32_t quanta_of(std::uint32_t port) const;
  // Events.
  void arrived(std::uint32_t port, unsigned priority, std::uint32_t quanta);
  void expired(std::uint32_t port, unsigned priority);
  void refresh(std::uint32_t port, unsigned priority);

  // The port sends again, whatever its peer said.
  void go_on(std::uint32_t port, unsigned priority);
  // How long the port was stopped.
  Ticks paused_time(std::uint32_t port, unsigned priority) const;

 private:
  void refresh_later(std::uint32_t port, unsigned priority);
  void stop(std::uint32_t port, unsigned priority);

  NetworkState& net_;
  PfcHost& host_;
};

}  // namespace weir::fabric::sim
