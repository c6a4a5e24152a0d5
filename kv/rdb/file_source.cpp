#include "kv/rdb/file_source.hpp"

#include <unistd.h>

#include <cerrno>

namespace weir::kv::rdb {

std::size_t FileSource::read(char* into, std::size_t most) {
  ssize_t size = 0;
  do {
    size = ::read(fd_, into, most);
  } while (size < 0 && errno == EINTR);
  if (size < 0) problem_ = errno;
  return size < 0 ? 0 : static_cast<std::size_t>(size);
}

}  // namespace weir::kv::rdb
