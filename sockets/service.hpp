// The thread that finds peers, connects queue pairs, and answers peers that leave the ring while the program
// is elsewhere. It sleeps unless somebody rings, and exists once a connection looks for its peer. Any thread
// may call these.
#pragma once

namespace weir::sockets {

class Connection;

bool service_agrees(Connection&);       // looks for its peer from now on; false: there is no service
void service_reconsiders(Connection&);  // gives up if it has looked for long
void service_ends(Connection&);         // closed: gives back what it has
void service_forgets_parent();          // in a child of fork()
void watch_forks();                     // registered once

}  // namespace weir::sockets
