#include "kv/core/history.hpp"

#include <algorithm>
#include <utility>

#include "kv/text/heap.hpp"

namespace weir::kv::repl {

void History::stop(std::string id) {
  kept_ = false;
  id_ = std::move(id);
  previous_id_.clear();
  previous_end_ = -1;
  blocks_.clear();
  begin_ = end_;
  database = -1;
}

std::size_t History::memory_of(std::size_t blocks) const {
  return blocks == 0 ? 0 : blocks * (sizeof(std::string) + heap_size(blocks_.front()));
}

std::size_t History::memory_beyond(std::int64_t bytes) const {
  // The first and the last block are there in part.
  const std::size_t needed = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0)) / block_size + 2;
  return memory_of(blocks_.size() - std::min(blocks_.size(), needed));
}

void History::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (blocks_.empty() || blocks_.back().size() == block_size) blocks_.emplace_back().reserve(block_size);
    std::string& block = blocks_.back();
    const std::size_t some = std::min(bytes.size(), block_size - block.size());
    block.append(bytes.substr(0, some));
    bytes.remove_prefix(some);
    end_ += static_cast<std::int64_t>(some);
  }
}

std::string_view History::from(std::int64_t position) const {
  const auto behind = static_cast<std::size_t>(position - begin_);
  const std::size_t number = behind / block_size;
  if (number >= blocks_.size()) return {};
  return std::string_view(blocks_[number]).substr(behind % block_size);
}

void History::forget_before(std::int64_t position) {
  while (!blocks_.empty() && blocks_.front().size() == block_size &&
         begin_ + static_cast<std::int64_t>(block_size) <= position) {
    blocks_.pop_front();
    begin_ += static_cast<std::int64_t>(block_size);
  }
}

bool History::can_continue(std::string_view id, std::int64_t position) const {
  if (!kept_ || position < begin_ || position > end_) return false;
  return id == id_ || (!previous_id_.empty() && id == previous_id_ && position <= previous_end_);
}

void History::adopt(std::string id, std::int64_t position) {
  kept_ = true;
  id_ = std::move(id);
  previous_id_.clear();
  previous_end_ = -1;
  blocks_.clear();
  begin_ = end_ = position;
  database = -1;
}

void History::rename(std::string id) {
  previous_id_ = std::exchange(id_, std::move(id));
  previous_end_ = end_;
}

}  // namespace weir::kv::repl
