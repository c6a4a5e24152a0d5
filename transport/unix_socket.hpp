// Unix stream sockets by path: connecting to one, and listening at one.
//
// Every socket is non-blocking and close-on-exec. Errors are errno values; ENAMETOOLONG means that the path
// is longer than the 107 bytes that fit into an address. Threading: none of its own.
#pragma once

#include <sys/types.h>

#include <expected>
#include <optional>
#include <string>

#include "transport/owned_fd.hpp"

namespace weir::transport {

// EAGAIN: the listener's queue is full, and there is nothing to wait on. Try again a little later.
std::expected<OwnedFd, int> connect_unix(const std::string& path);

// The file by which clients find a listening socket. It is removed with this object, unless another server
// has taken the path since. Keep the socket open until then: a closed socket's inode number may be reused.
class UnixSocketFile {
 public:
  explicit UnixSocketFile(std::string path);
  UnixSocketFile(UnixSocketFile&& other) noexcept;
  UnixSocketFile& operator=(UnixSocketFile&& other) noexcept;
  ~UnixSocketFile() { remove(); }

  void remove();

 private:
  // The descriptor of a socket cannot tell: it names an inode of another file system.
  struct Identity {
    dev_t device;
    ino_t inode;
    bool operator==(const Identity&) const = default;
  };
  static std::optional<Identity> identity_of(const std::string& path);

  std::string path_;
  std::optional<Identity> bound_;  // nullopt: nothing to remove
};

// Members are destroyed in reverse order, so the file goes first.
struct ListeningUnixSocket {
  OwnedFd fd;
  UnixSocketFile file;
};

// Replaces the file of a server that was killed. `mode` 0 leaves the permissions as the umask makes them; any
// other mode holds from the moment at which the file exists. EADDRINUSE: a server answers there, or the file
// is no socket.
std::expected<ListeningUnixSocket, int> listen_unix(const std::string& path, unsigned mode, int backlog);

}  // namespace weir::transport
