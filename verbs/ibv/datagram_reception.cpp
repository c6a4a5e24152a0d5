#include "verbs/ibv/datagram_reception.hpp"

#include <atomic>

#include "verbs/ibv/path.hpp"

namespace weir::verbs {
namespace {

// A forked child knows what its parent knew. seq_cst, as in PacketNetwork::takes_datagrams(): each side sets
// its own and then looks at the other's, so of two at once one at least sees both.
std::atomic<bool> told_program{false};

// What is in the way of it is told to whoever sends to another host.
void open_for_datagrams(NicProcess& nic) {
  if (!PacketNetwork::switched_off()) (void)nic.network().open();
}

}  // namespace

void datagrams_are_taken(NicProcess& nic) {
  nic.network().take_datagrams();
  if (told_program.load()) open_for_datagrams(nic);
}

void address_is_known(const ibv_gid& gid) {
  if (!is_unicast(gid) || told_program.exchange(true)) return;
  NicProcess* const nic = NicProcess::existing();
  if (nic != nullptr && nic->network().takes_datagrams()) open_for_datagrams(*nic);
}

}  // namespace weir::verbs
