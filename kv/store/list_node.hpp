// Some consecutive elements of a list: many small ones packed in one piece of memory, or one large one alone.
//
// Packed elements are a listpack's (kv/store/listpack.hpp), each with its size behind it so that they are
// found from both ends, without a listpack's header. What is taken from the front leaves room there, and a
// node of more than a few elements that gets one in front makes some: most need not move the others.
//
// Places are valid until the node changes. Texts given to a function must not lie in the node. Threading:
// none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "kv/store/listpack.hpp"
#include "kv/store/stored_text.hpp"
#include "kv/store/walk.hpp"

namespace weir::kv {

enum class End : std::uint8_t { left, right };

// Up to how many elements of how many bytes in all are packed together.
struct NodeLimit {
  std::size_t bytes = 8192;
  std::size_t elements = std::numeric_limits<std::size_t>::max();

  // What list-max-listpack-size says: a number of elements, or, negative, one of five sizes.
  static NodeLimit of_setting(std::int64_t setting) {
    constexpr std::size_t smallest = 4096;
    constexpr std::int64_t sizes = 5;
    if (setting >= 0) return {.elements = std::max<std::size_t>(static_cast<std::size_t>(setting), 1)};
    return {.bytes = smallest << (std::min(-setting, sizes) - 1)};
  }
};

class ListNode {
 public:
  using Place = listpack::Place;

  // A text that does not fit is alone.
  static bool fits(std::string_view text, NodeLimit limit) {
    return text.size() + most_around_text <= limit.bytes;
  }

  ListNode() = default;  // packed, and empty
  // With one element that does not fit.
  explicit ListNode(const GivenText& alone);
  ListNode(ListNode&& other) noexcept
      : piece_(std::exchange(other.piece_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        alone_(std::exchange(other.alone_, false)) {}
  ListNode& operator=(ListNode&& other) noexcept {
    std::swap(piece_, other.piece_);
    std::swap(size_, other.size_);
    std::swap(alone_, other.alone_);
    return *this;
  }
  ~ListNode();
  ListNode copy() const;

  std::size_t size() const { return size_; }
  std::size_t heap_size() const;

  bool takes(std::string_view text, NodeLimit limit) const {
    return !alone_ && size_ < limit.elements &&
           packed_bytes() + text.size() + most_around_text <= limit.bytes;
  }
  bool is_alone() const { return alone_; }
  // Whether it holds no more than half of what it may.
  bool is_half_empty(NodeLimit limit) const {
    return !alone_ && size_ <= limit.elements / 2 && packed_bytes() <= limit.bytes / 2;
  }
  // For a text that it takes.
  void push(End end, std::string_view text);
  void insert(std::size_t index, std::string_view text);

  void pop(End end) { end == End::left ? erase(0, 1) : erase(size_ - 1, size_); }
  // Elements from `first` to before `end`.
  void erase(std::size_t first, std::size_t end);
  // Equal elements, at most that many from one end on; returns how many there were.
  std::size_t remove(std::string_view text, std::size_t most, Walk walk);
  // Moves the elements from there on out of it; it is packed.
  ListNode split(std::size_t index);
  // Takes all elements of the next node if both are far from full.
  bool absorb(const ListNode& next, NodeLimit limit);

  StoredText at(std::size_t index) const;
  // Those from `first` to before `end`: visit(const StoredText&); false: it has said so.
  template <class Visit>
  bool for_each(std::size_t first, std::size_t end, Walk walk, Visit& visit) const {
    if (alone_) return first == end || visit(StoredText(whole()));
    Place place = place_of(walk == Walk::forward ? first : end);
    for (std::size_t left = end - first; left > 0; --left) {
      if (walk == Walk::backward) place = listpack::previous(place);
      if (!visit(StoredText::of(place))) return false;
      if (walk == Walk::forward) place = listpack::next(place);
    }
    return true;
  }

 private:
  struct Piece {
    std::uint32_t begin;  // where the elements are, counted from the piece's own address
    std::uint32_t end;
  };
  static constexpr std::size_t most_around_text = 10;  // an encoding and a size

  Piece& piece() const { return *static_cast<Piece*>(piece_); }
  char* raw() const { return static_cast<char*>(piece_); }
  Bytes& whole() const { return *static_cast<Bytes*>(piece_); }
  std::size_t packed_bytes() const { return piece_ == nullptr ? 0 : piece().end - piece().begin; }
  Place begin() const { return raw() + piece().begin; }
  Place end() const { return raw() + piece().end; }
  Place place_of(std::size_t index) const;
  void set_end(std::size_t end);
  void move_to(std::size_t begin);
  char* open_front(std::size_t bytes);
  char* open_back(std::size_t bytes);
  void close(Place first, Place last);

  void* piece_ = nullptr;  // a Piece, and the elements behind it; or the Bytes that are alone
  std::uint32_t size_ = 0;
  bool alone_ = false;
};

}  // namespace weir::kv
