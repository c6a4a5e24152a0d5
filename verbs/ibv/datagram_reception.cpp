#include "verbs/ibv/datagram_reception.hpp"

#include <atomic>

#include "verbs/ibv/path.hpp"

namespace weir::verbs {
namespace {

// A forked child inherits what its parent knew. seq_cst, as in PacketNetwork::takes_datagrams(): each side
// sets its own flag, then reads the other's, so if both act at once at least one sees both flags.
std::atomic<bool> datagrams_announced{false};

// If the port cannot be opened, the user is told when the program sends to another host.
void open_for_datagrams(NicProcess& nic) {
  if (!PacketNetwork::switched_off()) (void)nic.network().open();
}

}  // namespace

void datagrams_are_taken(NicProcess& nic) {
  nic.network().take_datagrams();
  if (datagrams_announced.load()) open_for_datagrams(nic);
}

void address_is_known(const ibv_gid& gid) {
  if (!is_unicast(gid) || datagrams_announced.exchange(true)) return;
  NicProcess* const nic = NicProcess::existing();
  if (nic != nullptr && nic->network().takes_datagrams()) open_for_datagrams(*nic);
}

}  // namespace weir::verbs
