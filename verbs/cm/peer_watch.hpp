// Finds out that peers on other hosts have ended without a word, killed by a signal, say. A kernel's
// connection manager then speaks for the process; ours has ended with it.
//
// An established connection asks its peer at once and then every few seconds by an RTU, which every
// connection manager takes for a repeated one and ignores. A Weir that does not know the connection refuses
// it; one that shares the address with the process that ended does it in its place (answer_of_nobody()). If
// no process has the port there any more, that host's kernel says so. It is believed the second time, because
// strangers can forge it (link/udp/port_probe.hpp), and only if an earlier question got through: a firewall
// that takes nothing but packets from port to port may say the same of a living peer.
//
// Silence says nothing: the peer may be stopped, or on another kind of NIC.
//
// Threading: the link's thread alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "link/same_host.hpp"
#include "link/udp/port_probe.hpp"
#include "verbs/cm/packet_carrier.hpp"

namespace weir::cm {

class PeerWatch {
 public:
  struct Question {
    std::shared_ptr<RemoteHost> peer;
    CmMessage message;
  };
  // How many are asked at once; the next time others have their turn.
  static constexpr std::size_t most_asked = 32;

  // Nobody has the port at that peer's address.
  using Closed = std::function<void(const link::NeighbourPtr& peer)>;

  // Both outlive it.
  PeerWatch(link::SameHostLink& link, PacketCarrier& carrier, Closed closed)
      : link_(link), carrier_(carrier), closed_(std::move(closed)) {}
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // A connection is established, so its peer lives. With most_asked sockets open it is asked in its turn.
  void greet(const Question& question, link::Clock::time_point now);
  // One question for each connection, in the order of their local_id; those that are due are asked. What was
  // asked a second ago and not refused got through.
  void ask(std::span<const Question> questions, link::Clock::time_point now);

 private:
  struct Asked {
    Question question;
    std::unique_ptr<link::PortProbe> probe;
    link::Clock::time_point since;
    int refusals = 0;  // before this one
  };

  void ask(const Question& question, link::Clock::time_point now, int refusals);
  void answered(const RemoteHost* peer);
  void close(const RemoteHost* peer);

  link::SameHostLink& link_;
  PacketCarrier& carrier_;
  const Closed closed_;
  std::map<const RemoteHost*, Asked> asked_;  // one socket a peer's address
  std::uint32_t last_asked_ = 0;              // a local_id
};

}  // namespace weir::cm
