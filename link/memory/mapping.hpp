// A shared mapping with one owner: of a file somebody else made, or of a new memfd.
#pragma once

#include <cstddef>
#include <optional>

#include "link/unique_fd.hpp"

namespace weir::link {

class Mapping {
 public:
  enum class Rights : unsigned char { read, read_write };
  static std::optional<Mapping> of_file(int fd, std::size_t bytes, Rights);

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Mapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  std::byte* data_;
  std::size_t size_;
};

// An anonymous shared file of that size; its pages appear as they are touched and vanish with the last
// holder.
UniqueFd make_shared_file(const char* name, std::size_t bytes);
// A descriptor of the same file by which nobody can map it writable; mappings that exist stay as they are.
UniqueFd read_only_copy(int fd);
std::size_t file_bytes(int fd);  // 0 on error
// Sealed, and of pages that are made when they are touched: a mapping of all its bytes never traps.
bool never_shrinks(int fd);

}  // namespace weir::link
