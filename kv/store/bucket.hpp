// The buckets of a hash table: each is one cache line, seven node pointers with a tag byte each. A full one
// turns its last slot into a link to a further bucket, and so on: a chain.
//
// Invariant: a chain has holes only in its last bucket. What the nodes are is the table's business
// (kv/store/table.hpp).
#pragma once

#include <bit>
#include <cstdint>

#include "kv/text/heap.hpp"

namespace weir::kv {

struct alignas(64) Bucket {
  static constexpr unsigned slots = 7;
  static constexpr std::uint8_t chained = 0x80;  // in `used`: the last slot links to a further bucket

  std::uint8_t tags[slots];
  std::uint8_t used;
  void* slot[slots];

  unsigned usable() const { return (used & chained) != 0 ? slots - 1 : slots; }
  std::uint8_t full_mask() const { return static_cast<std::uint8_t>((1u << usable()) - 1); }
  std::uint8_t nodes() const { return used & full_mask(); }
  Bucket* further() const { return (used & chained) != 0 ? static_cast<Bucket*>(slot[slots - 1]) : nullptr; }
  // Which of its nodes have this tag, as a bit mask.
  std::uint8_t matching(std::uint8_t tag) const {
    std::uint8_t mask = 0;
    for (unsigned i = 0; i < slots; ++i) mask |= static_cast<std::uint8_t>((tags[i] == tag ? 1u : 0u) << i);
    return mask & nodes();
  }
};
static_assert(sizeof(Bucket) == 64);

// The first buckets of a table's chains.
struct Buckets {
  Bucket* lines = nullptr;
  std::size_t mask = 0;
  void* piece = nullptr;  // where they lie

  explicit operator bool() const { return lines != nullptr; }
  std::size_t count() const { return lines == nullptr ? 0 : mask + 1; }
};

// Large tables stay untouched until they are used. jemalloc aligns them to a line anyway; there one line more
// than a power of two would take a quarter more memory. Others need that line.
inline Buckets allocate_buckets(std::size_t count) {
  constexpr std::uintptr_t below_line = sizeof(Bucket) - 1;
  void* piece = allocate_zeroed(count * sizeof(Bucket));
  if ((reinterpret_cast<std::uintptr_t>(piece) & below_line) != 0) {
    free_zeroed(piece);
    piece = allocate_zeroed((count + 1) * sizeof(Bucket));
  }
  const std::uintptr_t aligned = (reinterpret_cast<std::uintptr_t>(piece) + below_line) & ~below_line;
  return {reinterpret_cast<Bucket*>(aligned), count - 1, piece};
}
inline void free_buckets(Buckets& buckets) {
  if (buckets) free_zeroed(buckets.piece);
  buckets = {};
}

inline std::size_t nodes_in_chain(const Bucket* first) {
  std::size_t nodes = 0;
  for (const Bucket* b = first; b != nullptr; b = b->further())
    nodes += static_cast<std::size_t>(std::popcount(b->nodes()));
  return nodes;
}

inline void put_in_chain(Bucket* first, std::uint8_t tag, void* node) {
  Bucket* b = first;
  while (Bucket* further = b->further()) b = further;
  if (b->nodes() == b->full_mask()) {
    Bucket* link = new Bucket();
    link->tags[0] = b->tags[Bucket::slots - 1];
    link->slot[0] = b->slot[Bucket::slots - 1];
    link->used = 1;
    b->slot[Bucket::slots - 1] = link;
    b->used = static_cast<std::uint8_t>((b->used & 0x3f) | Bucket::chained);
    b = link;
  }
  const auto i = static_cast<unsigned>(std::countr_one(b->nodes()));
  b->tags[i] = tag;
  b->slot[i] = node;
  b->used = static_cast<std::uint8_t>(b->used | (1u << i));
}

// Slot `i` of `b` is free now: the chain's last node moves there, and an empty last bucket goes. `previous`
// is the bucket before `b`, if there is one.
inline void fill_hole(Bucket* previous, Bucket* b, unsigned i) {
  Bucket* last = b;
  while (Bucket* further = last->further()) {
    previous = last;
    last = further;
  }
  const auto from = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(last->nodes()))) - 1;
  b->tags[i] = last->tags[from];
  b->slot[i] = last->slot[from];
  last->used = static_cast<std::uint8_t>(last->used & ~(1u << from));
  if (last->used == 0 && previous != nullptr) {
    delete last;
    previous->used = static_cast<std::uint8_t>(previous->used & ~Bucket::chained);
  }
}

// Frees all but the first, and empties that.
inline void free_links(Bucket* first) {
  for (Bucket* b = first->further(); b != nullptr;) {
    Bucket* next = b->further();
    delete b;
    b = next;
  }
  first->used = 0;
}

}  // namespace weir::kv
