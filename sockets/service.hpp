// The thread that finds peers, connects queue pairs, and answers peers that leave the ring while the program
// is busy elsewhere. It sleeps until somebody rings, and starts when a connection first looks for its peer.
// Any thread may call these functions.
#pragma once

namespace weir::sockets {

class Connection;

bool service_agrees(Connection&);       // starts to look for the peer; false: there is no service
void service_reconsiders(Connection&);  // gives up if it has looked for too long
void service_ends(Connection&);         // closed: frees what it holds
void service_forgets_parent();          // in a child of fork()

}  // namespace weir::sockets
