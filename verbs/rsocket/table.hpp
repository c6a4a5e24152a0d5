// The rsockets of this process by number.
//
// A forked child has none of its parent's, as they belong to the parent's queue pairs: for it their numbers
// are plain descriptors, which it can close. Thread safe.
#pragma once

#include "verbs/rsocket/socket.hpp"

namespace weir::rsocket {

void insert(SocketPtr socket);
SocketPtr find(int number);    // null: not an rsocket
SocketPtr remove(int number);  // likewise
// True in a child, for what was an rsocket of its parent when it forked; no longer after that.
bool remove_inherited(int number);
std::vector<SocketPtr> all_sockets();

}  // namespace weir::rsocket
