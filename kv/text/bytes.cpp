#include "kv/text/bytes.hpp"

#include <algorithm>

namespace weir::kv {

namespace {
// Appending doubles the capacity, up to a step that keeps the slack of large values small.
std::size_t roomy(std::size_t size) {
  constexpr std::size_t step_limit = 1u << 20;
  return size < step_limit ? size * 2 : size + step_limit;
}
}  // namespace

void Bytes::reassign(std::string_view text) {
  if (is_blob() && blob()->references == 1 && text.size() > inline_capacity &&
      text.size() <= blob()->capacity && text.size() * 2 >= blob()->capacity) {
    std::memmove(blob()->data(), text.data(), text.size());
    blob()->size = text.size();
    return;
  }
  *this = Bytes(text);
}

void Bytes::own_block(std::size_t capacity) {
  if (is_blob() && blob()->references == 1) return set_blob(Blob::with_capacity(blob(), capacity));
  Blob* const block = Blob::make(size(), capacity);
  std::memcpy(block->data(), data(), size());
  Bytes fresh{BlobRef(block)};
  *this = std::move(fresh);
}

void Bytes::append(std::string_view text) {
  const std::size_t old_size = size();
  const std::size_t new_size = old_size + text.size();
  if (!is_blob() && new_size <= inline_capacity) {
    std::memcpy(raw_ + old_size, text.data(), text.size());
    set_inline_size(new_size);
    return;
  }
  if (!is_blob() || blob()->references > 1 || blob()->capacity < new_size) own_block(roomy(new_size));
  std::memcpy(blob()->data() + old_size, text.data(), text.size());
  blob()->size = new_size;
}

char* Bytes::grow_zeroed(std::size_t new_size) {
  const std::size_t old_size = size();
  new_size = std::max(new_size, old_size);
  if (!is_blob() && new_size <= inline_capacity) {
    std::memset(raw_ + old_size, 0, new_size - old_size);
    set_inline_size(new_size);
    return raw_;
  }
  if (!is_blob() || blob()->references > 1 || blob()->capacity < new_size) {
    own_block(new_size > old_size ? std::max(new_size, roomy(old_size)) : new_size);
  }
  std::memset(blob()->data() + old_size, 0, new_size - old_size);
  blob()->size = new_size;
  return blob()->data();
}

}  // namespace weir::kv
