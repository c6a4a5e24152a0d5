// The rsockets and event polls of this process by number.
//
// A forked child has none of its parent's, as rsockets belong to the parent's queue pairs: for it their
// numbers are plain descriptors, which it can close. Thread safe.
#pragma once

#include "verbs/rsocket/socket.hpp"

namespace weir::rsocket {

class EventPoll;
using EventPollPtr = std::shared_ptr<EventPoll>;

void insert(SocketPtr socket);
SocketPtr find(int number);    // null: not an rsocket
SocketPtr remove(int number);  // likewise
// True in a child, for what was an rsocket of its parent when it forked; no longer after that.
bool remove_inherited(int number);
std::vector<SocketPtr> all_sockets();

void insert(int number, EventPollPtr poll);
EventPollPtr find_event_poll(int number);    // null: not one
EventPollPtr remove_event_poll(int number);  // likewise
std::vector<EventPollPtr> all_event_polls();

}  // namespace weir::rsocket
