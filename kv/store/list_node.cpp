#include "kv/store/list_node.hpp"

#include <algorithm>
#include <cstring>

#include "kv/store/tight_room.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {

ListNode::ListNode(const GivenText& alone) : piece_(new Bytes(alone.kept())), size_(1), alone_(true) {}

ListNode::~ListNode() {
  if (alone_) {
    delete &whole();
  } else if (piece_ != nullptr) {
    free_allocated(piece_);
  }
}

ListNode ListNode::copy() const {
  if (alone_) return ListNode(GivenText(whole()));
  ListNode other;
  if (piece_ == nullptr) return other;
  const std::size_t end = piece().end;
  other.piece_ = allocate(tight_capacity(end));
  std::memcpy(other.piece_, piece_, end);
  other.size_ = size_;
  return other;
}

std::size_t ListNode::heap_size() const {
  if (alone_) return sizeof(Bytes) + whole().heap_size();
  return piece_ == nullptr ? 0 : tight_capacity(piece().end);
}

ListNode::Place ListNode::place_of(std::size_t index) const {
  if (index <= size_ / 2) return piece_ == nullptr ? nullptr : listpack::skip(begin(), index);
  Place place = end();
  for (std::size_t left = size_ - index; left > 0; --left) place = listpack::previous(place);
  return place;
}

StoredText ListNode::at(std::size_t index) const {
  return alone_ ? StoredText(whole()) : StoredText::of(place_of(index));
}

// Elements end there from now on; the piece is as large as that needs.
void ListNode::set_end(std::size_t end) {
  if (piece_ == nullptr) {
    piece_ = allocate(tight_capacity(end));
    piece().begin = sizeof(Piece);
  } else if (tight_capacity(end) != tight_capacity(piece().end)) {
    piece_ = resized(piece_, tight_capacity(end));
  }
  piece().end = static_cast<std::uint32_t>(end);
}

void ListNode::move_to(std::size_t begin) {
  const std::size_t old_begin = piece().begin;
  const std::size_t bytes = packed_bytes();
  if (begin > old_begin) set_end(begin + bytes);
  std::memmove(raw() + begin, raw() + old_begin, bytes);
  piece().begin = static_cast<std::uint32_t>(begin);
  if (begin < old_begin) set_end(begin + bytes);
}

char* ListNode::open_front(std::size_t bytes) {
  if (piece_ == nullptr) return open_back(bytes);
  if (piece().begin < sizeof(Piece) + bytes) {
    constexpr std::size_t few = 512;  // bytes, that are moved as quickly as not
    const std::size_t spare = packed_bytes() < few ? 0 : packed_bytes() / 8;
    move_to(sizeof(Piece) + spare + bytes);
  }
  piece().begin -= static_cast<std::uint32_t>(bytes);
  return raw() + piece().begin;
}

char* ListNode::open_back(std::size_t bytes) {
  if (piece_ == nullptr) set_end(sizeof(Piece));
  const std::size_t spare = piece().begin - sizeof(Piece);
  if (spare > packed_bytes() / 4 + bytes) move_to(sizeof(Piece));
  const std::size_t end = piece().end;
  set_end(end + bytes);
  return raw() + end;
}

void ListNode::push(End end, std::string_view text) {
  const listpack::Element element(text);
  const std::size_t bytes = listpack::bytes_in_row(element);
  listpack::put_in_row(end == End::left ? open_front(bytes) : open_back(bytes), element);
  ++size_;
}

void ListNode::insert(std::size_t index, std::string_view text) {
  if (index == 0) return push(End::left, text);
  if (index == size_) return push(End::right, text);
  const listpack::Element element(text);
  const std::size_t bytes = listpack::bytes_in_row(element);
  const auto offset = static_cast<std::size_t>(place_of(index) - raw());
  const std::size_t end = piece().end;
  set_end(end + bytes);
  std::memmove(raw() + offset + bytes, raw() + offset, end - offset);
  listpack::put_in_row(raw() + offset, element);
  ++size_;
}

// Takes bytes out; those behind them follow.
void ListNode::close(Place first, Place last) {
  const auto bytes = static_cast<std::size_t>(last - first);
  if (first == begin()) {
    piece().begin += static_cast<std::uint32_t>(bytes);
    if (piece().begin - sizeof(Piece) > packed_bytes() + 64) move_to(sizeof(Piece));
    return;
  }
  std::memmove(raw() + (first - raw()), last, static_cast<std::size_t>(end() - last));
  set_end(piece().end - bytes);
}

void ListNode::erase(std::size_t first, std::size_t end) {
  if (first == end) return;
  if (end - first == size_) {
    *this = ListNode();
    return;
  }
  const Place begins = place_of(first);
  close(begins, end == first + 1 ? listpack::next(begins) : place_of(end));
  size_ -= static_cast<std::uint32_t>(end - first);
}

std::size_t ListNode::remove(std::string_view text, std::size_t most, Walk walk) {
  if (alone_) {
    if (most == 0 || whole().view() != text) return 0;
    *this = ListNode();
    return 1;
  }
  const listpack::Element wanted(text);
  std::size_t removed = 0;
  // What is closed may move the others, so places are counted from the end in front of which they stay.
  if (walk == Walk::forward) {
    for (std::size_t left = packed_bytes(); left > 0 && removed < most;) {
      const Place place = end() - left;
      const Place next = listpack::next(place);
      left -= static_cast<std::size_t>(next - place);
      if (!wanted.is_at(place)) continue;
      close(place, next);
      ++removed;
    }
  } else {
    for (std::size_t left = packed_bytes(); left > 0 && removed < most;) {
      const Place next = begin() + left;
      const Place place = listpack::previous(next);
      left -= static_cast<std::size_t>(next - place);
      if (!wanted.is_at(place)) continue;
      close(place, next);
      ++removed;
    }
  }
  size_ -= static_cast<std::uint32_t>(removed);
  if (size_ == 0) *this = ListNode();
  return removed;
}

ListNode ListNode::split(std::size_t index) {
  ListNode behind;
  const Place place = place_of(index);
  const auto bytes = static_cast<std::size_t>(end() - place);
  std::memcpy(behind.open_back(bytes), place, bytes);
  behind.size_ = size_ - static_cast<std::uint32_t>(index);
  erase(index, size_);
  return behind;
}

bool ListNode::absorb(const ListNode& next, NodeLimit limit) {
  if (alone_ || next.alone_ || packed_bytes() + next.packed_bytes() > limit.bytes / 2 ||
      size_ + next.size_ > limit.elements / 2)
    return false;
  const std::size_t bytes = next.packed_bytes();
  if (bytes != 0) std::memcpy(open_back(bytes), next.begin(), bytes);
  size_ += next.size_;
  return true;
}

}  // namespace weir::kv
