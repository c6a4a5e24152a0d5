#include "kv/resp/reply_queue.hpp"

#include <algorithm>

#include "kv/text/spare_room.hpp"

namespace weir::kv {

BlobRef BlockPool::take() {
  if (free_.empty()) return BlobRef(Blob::make(0, block_size));
  BlobRef block = std::move(free_.back());
  free_.pop_back();
  return block;
}

void BlockPool::give(BlobRef block) {
  if (free_.size() < kept_blocks) free_.push_back(std::move(block));
}

void ReplyQueue::open_block(std::size_t size) {
  close_block();
  open_pooled_ = size <= BlockPool::block_size;
  open_ = open_pooled_ ? pool_.take() : BlobRef(Blob::make_roomy(size));
  begin_ = out_ = open_->data();
  limit_ = begin_ + open_->capacity;
}

void ReplyQueue::close_block() {
  if (open_ && out_ != begin_) {
    const auto begin = static_cast<std::size_t>(begin_ - open_->data());
    const auto end = static_cast<std::size_t>(out_ - open_->data());
    closed_memory_ += open_->memory();
    segments_.push_back({std::move(open_), begin, end, open_pooled_ ? Owner::pool : Owner::queue});
    closed_size_ += end - begin;
  } else if (open_ && open_pooled_) {
    pool_.give(std::move(open_));
  }
  open_.reset();
  begin_ = out_ = limit_ = nullptr;
}

void ReplyQueue::append_shared(Blob* block) {
  close_block();
  segments_.push_back({BlobRef::share(block), 0, block->size, Owner::others});
  closed_size_ += block->size;
}

std::size_t ReplyQueue::gather(iovec* pieces, std::size_t most) const {
  std::size_t count = 0;
  for (const Segment& s : segments_) {
    if (count == most) return count;
    pieces[count++] = {s.block->data() + s.begin, s.end - s.begin};
  }
  if (count < most && out_ != begin_) pieces[count++] = {begin_, static_cast<std::size_t>(out_ - begin_)};
  return count;
}

BlobRef ReplyQueue::share_first() const {
  return BlobRef::share(segments_.empty() ? open_.get() : segments_.front().block.get());
}

void ReplyQueue::consume(std::size_t bytes) {
  std::size_t done = 0;
  while (done < segments_.size()) {
    Segment& s = segments_[done];
    const std::size_t size = s.end - s.begin;
    const std::size_t taken = std::min(size, bytes);
    closed_size_ -= taken;
    bytes -= taken;
    if (taken < size) {
      s.begin += taken;
      break;
    }
    if (s.owner != Owner::others) closed_memory_ -= s.block->memory();
    if (s.owner == Owner::pool) pool_.give(std::move(s.block));
    ++done;
  }
  if (done == segments_.size()) {
    empty_list(segments_);
  } else if (done > 0) {
    segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(done));
  }
  begin_ += bytes;
  if (begin_ == out_) close_block();
}

void ReplyQueue::clear() { consume(size()); }

}  // namespace weir::kv
