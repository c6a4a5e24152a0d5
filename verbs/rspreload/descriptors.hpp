// Which descriptors of the process are rsockets and event polls; all others are plain. Any thread.
#pragma once

#include <cstdint>

namespace weir::rspreload {

enum class Kind : std::uint8_t { plain, rsocket, event_poll };

Kind kind_of(int fd);
inline bool is_rsocket(int fd) { return kind_of(fd) == Kind::rsocket; }
bool set_kind(int fd, Kind kind);  // false: the number is too large to be anything but plain
Kind take_kind(int fd);            // what it was; it is plain now
// The lowest from `first` to `last` that is not plain; -1: none.
int next_not_plain(unsigned first, unsigned last);
// In a child of vfork(), whose memory is its parent's, and whose descriptors are not: what it closes is not
// to be closed, or forgotten, here.
bool in_borrowed_memory();

}  // namespace weir::rspreload
