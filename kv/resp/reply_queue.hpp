// Outgoing replies: the bytes of many replies gathered in a few blocks, and large values by reference.
//
// Blocks come from a pool and return to it once sent. So an idle connection holds none, and a busy one writes
// into memory that is warm in the cache.
//
// Threading: the server's one thread.
#pragma once

#include <absl/container/inlined_vector.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "kv/text/bytes.hpp"

namespace weir::kv {

// A pool of blocks for replies. Keeps at most `kept_blocks`, and frees the others.
class BlockPool {
 public:
  static constexpr std::size_t block_size = 16 * 1024 - sizeof(Blob);
  static constexpr std::size_t kept_blocks = 256;

  BlobRef take();
  void give(BlobRef block);

 private:
  std::vector<BlobRef> free_;
};

class ReplyQueue {
 public:
  explicit ReplyQueue(BlockPool& pool) : pool_(pool) {}
  ReplyQueue(const ReplyQueue&) = delete;
  ReplyQueue& operator=(const ReplyQueue&) = delete;

  // Room for `size` bytes at the end; commit() tells how many were written.
  char* reserve(std::size_t size) {
    if (static_cast<std::size_t>(limit_ - out_) < size) open_block(size);
    return out_;
  }
  void commit(std::size_t size) { out_ += size; }

  void append(std::string_view bytes) {
    std::memcpy(reserve(bytes.size()), bytes.data(), bytes.size());
    commit(bytes.size());
  }
  void append_shared(Blob* block);  // takes a reference instead of a copy

  bool empty() const { return out_ == begin_ && segments_.empty(); }
  std::size_t size() const { return closed_size_ + static_cast<std::size_t>(out_ - begin_); }
  // Of its own blocks. Shared ones are their other owners'.
  std::size_t memory() const { return closed_memory_ + (open_ ? open_->memory() : 0); }

  // The first bytes to send, in at most `most` pieces; consume() drops those that were sent.
  std::size_t gather(iovec* pieces, std::size_t most) const;
  // The owner of the first piece, for a transport that reads it later. Not for a block from the pool.
  BlobRef share_first() const;
  void consume(std::size_t bytes);
  void clear();
  BlockPool& pool() const { return pool_; }

 private:
  enum class Owner : std::uint8_t { pool, queue, others };
  struct Segment {
    BlobRef block;
    std::size_t begin;
    std::size_t end;
    Owner owner;
  };

  void open_block(std::size_t size);
  void close_block();

  BlockPool& pool_;
  absl::InlinedVector<Segment, 1> segments_;  // closed segments in sending order
  std::size_t closed_size_ = 0;
  std::size_t closed_memory_ = 0;
  BlobRef open_;           // the block that replies are written into
  char* begin_ = nullptr;  // its unsent bytes: [begin_, out_)
  char* out_ = nullptr;
  char* limit_ = nullptr;
  bool open_pooled_ = false;
};

}  // namespace weir::kv
