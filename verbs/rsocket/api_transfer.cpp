// The C interface: sending and receiving.
#include <climits>

#include "verbs/rsocket/api.hpp"

using namespace weir::rsocket;

namespace {

Result<std::size_t> send(int number, Pieces from, int flags, const sockaddr* to, socklen_t to_size) {
  const SocketPtr socket = find(number);
  if (!socket) return std::unexpected(EBADF);
  return socket->send(from, flags, to, to_size);
}

Result<std::size_t> receive(int number, Pieces into, int flags, sockaddr* from, socklen_t* from_size) {
  const SocketPtr socket = find(number);
  if (!socket) return std::unexpected(EBADF);
  sockaddr_storage sender{};
  auto got = socket->receive(into, flags, &sender);
  // A stream has nothing to say there, as recvfrom(2) of TCP.
  if (got && from_size != nullptr) {
    if (sender.ss_family == 0) {
      *from_size = 0;
    } else {
      give_name(sender, from, from_size);
    }
  }
  return got;
}

bool valid(const iovec* pieces, std::size_t count) {
  return count <= IOV_MAX && (pieces != nullptr || count == 0);
}

// 0, or what sendmsg() and recvmsg() say of such buffers.
int check(const msghdr* message) {
  if (message == nullptr) return EFAULT;
  if (message->msg_iovlen > IOV_MAX) return EMSGSIZE;
  return valid(message->msg_iov, message->msg_iovlen) ? 0 : EINVAL;
}

iovec piece_of(const void* data, std::size_t size) { return {const_cast<void*>(data), size}; }

}  // namespace

extern "C" {

ssize_t rsend(int socket, const void* data, size_t size, int flags) {
  const iovec piece = piece_of(data, size);
  return as_c(send(socket, Pieces({&piece, 1}), flags, nullptr, 0));
}

ssize_t rsendto(int socket, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  const iovec piece = piece_of(data, size);
  return as_c(send(socket, Pieces({&piece, 1}), flags, to, to_size));
}

ssize_t rsendmsg(int socket, const msghdr* message, int flags) {
  if (const int error = check(message); error != 0) return as_c(error);
  if (message->msg_controllen != 0) return as_c(ENOTSUP);
  return as_c(send(socket, Pieces({message->msg_iov, message->msg_iovlen}), flags,
                   static_cast<const sockaddr*>(message->msg_name), message->msg_namelen));
}

ssize_t rwrite(int socket, const void* data, size_t size) { return rsend(socket, data, size, 0); }

ssize_t rwritev(int socket, const iovec* pieces, int count) {
  if (count < 0 || !valid(pieces, static_cast<std::size_t>(count))) return as_c(EINVAL);
  return as_c(send(socket, Pieces({pieces, static_cast<std::size_t>(count)}), 0, nullptr, 0));
}

ssize_t rrecv(int socket, void* data, size_t size, int flags) {
  const iovec piece = piece_of(data, size);
  return as_c(receive(socket, Pieces({&piece, 1}), flags, nullptr, nullptr));
}

ssize_t rrecvfrom(int socket, void* data, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  const iovec piece = piece_of(data, size);
  return as_c(receive(socket, Pieces({&piece, 1}), flags, from, from_size));
}

ssize_t rrecvmsg(int socket, msghdr* message, int flags) {
  if (const int error = check(message); error != 0) return as_c(error);
  const auto got = receive(socket, Pieces({message->msg_iov, message->msg_iovlen}), flags,
                           static_cast<sockaddr*>(message->msg_name), &message->msg_namelen);
  message->msg_controllen = 0;
  message->msg_flags = 0;
  return as_c(got);
}

ssize_t rread(int socket, void* data, size_t size) { return rrecv(socket, data, size, 0); }

ssize_t rreadv(int socket, const iovec* pieces, int count) {
  if (count < 0 || !valid(pieces, static_cast<std::size_t>(count))) return as_c(EINVAL);
  return as_c(receive(socket, Pieces({pieces, static_cast<std::size_t>(count)}), 0, nullptr, nullptr));
}

off_t riomap(int socket, void* buffer, size_t size, int protection, int, off_t offset) {
  const weir::link::NotCancelled whole;
  const SocketPtr found = find(socket);
  if (!found) return as_c(EBADF);
  const auto mapped = found->map(buffer, size, protection, offset);
  return mapped ? static_cast<off_t>(*mapped) : as_c(mapped.error());
}

int riounmap(int socket, void* buffer, size_t size) {
  return whole_on_socket(socket, [&](Socket& s) { return s.unmap(buffer, size); });
}

size_t riowrite(int socket, const void* data, size_t size, off_t offset, int flags) {
  const iovec piece = piece_of(data, size);
  return static_cast<size_t>(on_socket(socket, [&](Socket& s) {
    return s.write_mapped(Pieces({&piece, 1}), static_cast<std::uint64_t>(offset), flags);
  }));
}

}  // extern "C"
