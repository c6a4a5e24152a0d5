// A hash table that can be walked with a cursor while it changes: what SCAN promises needs more than a hash
// map.
//
// Nodes are owned by the table through Traits: `static std::string_view key(const Node&)` and
// `static void destroy(Node*)`. A lookup touches one cache line for the bucket (kv/store/bucket.hpp) and one
// for the node.
//
// Growing and shrinking move one bucket chain with each operation, so no single command pays for it.
//
// scan(): bucket indices are visited with their bits reversed, counted from the top. A bucket of a small
// table then stands for a contiguous run of that order in any larger table, so an element that is present
// from the first call to the last is returned at least once, however often the table is resized between
// calls; some may come twice.
//
// Invariant: a node lives in the chain of its hash in `next_` if that exists and its bucket in `now_` has
// been moved (index < moved_), else in `now_`.
// Hashes are SipHash's under the process's secret key, so that clients cannot choose collisions.
// Threading: none.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>

#include "hash/keyed.hpp"
#include "kv/store/bucket.hpp"

namespace weir::kv {

template <class Node, class Traits>
class Table {
 public:
  Table() = default;
  Table(Table&& other) noexcept { swap(other); }
  Table& operator=(Table&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Table() { clear(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t bucket_count() const { return now_.count() + next_.count(); }

  Node* find(std::string_view key) {
    if (next_) move_some();
    return look(key);
  }
  // The same, but moves nothing: allowed while the table is walked through.
  Node* look(std::string_view key) const {
    if (size_ == 0) return nullptr;
    const std::size_t hash = hash_of(key);
    if (next_) {
      if (Node* node = find_in(next_, hash, key)) return node;
    }
    return find_in(now_, hash, key);
  }

  // Fetches the cache line that a find() of this key will wait for.
  void prefetch(std::string_view key) const {
    if (size_ == 0) return;
    const std::size_t hash = hash_of(key);
    __builtin_prefetch(&now_.lines[hash & now_.mask]);
    if (next_) __builtin_prefetch(&next_.lines[hash & next_.mask]);
  }

  // The key must not be in the table.
  void insert(Node* node) {
    if (next_) move_some();
    reserve_one();
    const std::size_t hash = hash_of(Traits::key(*node));
    put(next_ ? next_ : now_, hash, node);
    ++size_;
  }

  // Makes an empty table large enough for `nodes`, so that it does not grow on the way there.
  void reserve(std::size_t nodes) {
    if (size_ != 0 || nodes == 0) return;
    clear();
    now_ = allocate_buckets(std::bit_ceil((nodes + fill - 1) / fill));
  }

  // Takes the node out and hands it to the caller; null if there is no such node.
  Node* extract(std::string_view key) {
    if (size_ == 0) return nullptr;
    if (next_) move_some();
    const std::size_t hash = hash_of(key);
    Node* node = next_ ? take(next_, hash, key) : nullptr;
    if (node == nullptr) node = take(now_, hash, key);
    if (node != nullptr) {
      --size_;
      shrink_if_sparse();
    }
    return node;
  }

  bool erase(std::string_view key) {
    Node* node = extract(key);
    if (node == nullptr) return false;
    Traits::destroy(node);
    return true;
  }

  // Puts `node` (with an equal key) in the place of the node of that key.
  void replace(Node* old, Node* node) {
    const std::size_t hash = hash_of(Traits::key(*old));
    if (!(next_ && replace_in(next_, hash, old, node))) replace_in(now_, hash, old, node);
  }

  void clear() {
    clear_buckets(now_);
    clear_buckets(next_);
    size_ = 0;
    moved_ = 0;
  }

  // Moves all nodes out; an empty table stays.
  Table take() {
    Table taken;
    swap(taken);
    return taken;
  }

  // Frees about `most` nodes by `destroy(Node*)`; returns true if some are left. After the first call only
  // this function and the destructor may be called.
  template <class Destroy>
  bool free_some(std::size_t most, Destroy destroy) {
    for (std::size_t freed = 0; now_ && freed < most;) {
      if (moved_ == now_.count()) {
        free_buckets(now_);
        now_ = std::exchange(next_, {});
        moved_ = 0;
        continue;
      }
      Bucket* const first = &now_.lines[moved_++];
      freed += 1 + nodes_in_chain(first);  // empty buckets take their time, too
      clear_chain(first, destroy);
    }
    return static_cast<bool>(now_);
  }

  void swap(Table& other) noexcept {
    std::swap(now_, other.now_);
    std::swap(next_, other.next_);
    std::swap(size_, other.size_);
    std::swap(moved_, other.moved_);
  }

  // Visits every node; `visit(Node&)` must not change the table. Stops early when it returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Buckets* buckets : {&now_, &next_}) {
      for (std::size_t i = 0; i < buckets->count(); ++i) {
        if (!visit_chain(&buckets->lines[i], visit)) return;
      }
    }
  }

  // One step of a scan: visits the chains that `cursor` stands for and returns the next cursor, 0 when it is
  // over. `visit(Node&)` must not change the table.
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit visit) const {
    if (size_ == 0) return 0;
    auto visit_all = [&visit](Node& node) {
      visit(node);
      return true;
    };
    const Buckets* small = &now_;
    const Buckets* large = &next_;
    if (!next_) {
      visit_chain(&small->lines[cursor & small->mask], visit_all);
      return reverse_increment(cursor, small->mask);
    }
    if (small->mask > large->mask) std::swap(small, large);
    visit_chain(&small->lines[cursor & small->mask], visit_all);
    do {
      visit_chain(&large->lines[cursor & large->mask], visit_all);
      cursor = reverse_increment(cursor, large->mask);
    } while ((cursor & (small->mask ^ large->mask)) != 0);
    return cursor;
  }

  // A node chosen by `random()` (64 random bits a call), each as likely as the others: a place in a bucket is
  // drawn, and drawn again while nothing is there. Only a bucket of more than `places` nodes, one in 100,000
  // at the average of `fill`, has to share what it gets.
  template <class Random>
  Node* sample(Random&& random) const {
    if (size_ == 0) return nullptr;
    constexpr std::size_t places = 16;
    for (;;) {
      const std::uint64_t drawn = random();
      const Bucket* bucket = bucket_at(static_cast<std::size_t>(drawn % bucket_count()));
      const std::size_t nodes = nodes_in_chain(bucket);
      if (nodes > places) return node_of(bucket, static_cast<std::size_t>(random() % nodes));
      if (const std::size_t place = drawn >> 60; place < nodes) return node_of(bucket, place);
    }
  }
  // The same for less: each bucket that is not empty is as likely as the others, then each of its nodes.
  template <class Random>
  Node* sample_roughly(Random&& random) const {
    if (size_ == 0) return nullptr;
    for (;;) {
      const Bucket* bucket = bucket_at(static_cast<std::size_t>(random() % bucket_count()));
      if (const std::size_t nodes = nodes_in_chain(bucket); nodes != 0) {
        return node_of(bucket, static_cast<std::size_t>(random() % nodes));
      }
    }
  }

  // Bytes of the buckets (chained ones excepted) for memory reports.
  std::size_t bucket_bytes() const { return bucket_count() * sizeof(Bucket); }

  // Nodes a bucket holds on average before the table grows.
  static constexpr std::size_t fill = 5;

 private:
  // Of both tables, those of `now_` first.
  const Bucket* bucket_at(std::size_t index) const {
    return index < now_.count() ? &now_.lines[index] : &next_.lines[index - now_.count()];
  }
  // The node that `skipped` others of the chain come before.
  static Node* node_of(const Bucket* bucket, std::size_t skipped) {
    Node* chosen = nullptr;
    auto pick = [&](Node& node) {
      chosen = &node;
      return skipped-- != 0;
    };
    visit_chain(bucket, pick);
    return chosen;
  }

  static Node* node_at(const Bucket& bucket, unsigned slot) { return static_cast<Node*>(bucket.slot[slot]); }
  static std::uint8_t tag_of(std::size_t hash) { return static_cast<std::uint8_t>(hash >> 56); }
  static std::size_t hash_of(std::string_view key) { return hash::Keyed{}(key); }
  static Node* find_in(const Buckets& buckets, std::size_t hash, std::string_view key) {
    const std::uint8_t tag = tag_of(hash);
    for (const Bucket* b = &buckets.lines[hash & buckets.mask]; b != nullptr; b = b->further()) {
      for (unsigned mask = b->matching(tag); mask != 0; mask &= mask - 1) {
        Node* node = node_at(*b, static_cast<unsigned>(std::countr_zero(mask)));
        if (Traits::key(*node) == key) return node;
      }
    }
    return nullptr;
  }

  static bool replace_in(const Buckets& buckets, std::size_t hash, Node* old, Node* node) {
    for (Bucket* b = &buckets.lines[hash & buckets.mask]; b != nullptr; b = b->further()) {
      for (unsigned i = 0; i < b->usable(); ++i) {
        if ((b->nodes() >> i & 1) != 0 && b->slot[i] == old) {
          b->slot[i] = node;
          return true;
        }
      }
    }
    return false;
  }

  static void put(const Buckets& buckets, std::size_t hash, Node* node) {
    put_in_chain(&buckets.lines[hash & buckets.mask], tag_of(hash), node);
  }

  static Node* take(const Buckets& buckets, std::size_t hash, std::string_view key) {
    Bucket* previous = nullptr;
    const std::uint8_t tag = tag_of(hash);
    for (Bucket* b = &buckets.lines[hash & buckets.mask]; b != nullptr; previous = b, b = b->further()) {
      for (unsigned mask = b->matching(tag); mask != 0; mask &= mask - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(mask));
        Node* node = node_at(*b, i);
        if (Traits::key(*node) != key) continue;
        fill_hole(previous, b, i);
        return node;
      }
    }
    return nullptr;
  }

  template <class Visit>
  static bool visit_chain(const Bucket* b, Visit& visit) {
    for (; b != nullptr; b = b->further()) {
      for (unsigned mask = b->nodes(); mask != 0; mask &= mask - 1) {
        if (!visit(*node_at(*b, static_cast<unsigned>(std::countr_zero(mask))))) return false;
      }
    }
    return true;
  }

  void clear_buckets(Buckets& buckets) {
    for (std::size_t i = 0; i < buckets.count(); ++i) clear_chain(&buckets.lines[i], Traits::destroy);
    free_buckets(buckets);
  }
  template <class Destroy>
  static void clear_chain(Bucket* first, Destroy& destroy) {
    auto destroy_each = [&destroy](Node& node) {
      destroy(&node);
      return true;
    };
    visit_chain(first, destroy_each);
    free_links(first);
  }
  void reserve_one() {
    if (!now_) {
      now_ = allocate_buckets(1);
    } else if (!next_ && size_ >= now_.count() * fill) {
      start_resize(now_.count() * 2);
    }
  }

  void shrink_if_sparse() {
    if (next_ || now_.count() == 1 || size_ * 2 > now_.count()) return;
    start_resize(std::bit_ceil(size_ / (fill - 1) + 1));
  }

  void start_resize(std::size_t count) {
    next_ = allocate_buckets(count);
    moved_ = 0;
    constexpr std::size_t at_once = 16;  // small tables move whole: cheaper than looking in two places
    if (now_.count() <= at_once) {
      while (next_) move_some();
    }
  }

  // Moves the next non-empty chain, and looks at no more than ten empty ones.
  void move_some() {
    for (unsigned looked = 0; looked < 10; ++looked) {
      Bucket* b = &now_.lines[moved_];
      const bool had_nodes = b->nodes() != 0;
      if (had_nodes) {
        auto rehash = [this](Node& node) {
          put(next_, hash_of(Traits::key(node)), &node);
          return true;
        };
        visit_chain(b, rehash);
        free_links(b);
      }
      if (++moved_ == now_.count()) {
        free_buckets(now_);
        now_ = std::exchange(next_, {});
        moved_ = 0;
        return;
      }
      if (had_nodes) return;
    }
  }

  static std::uint64_t reverse_bits(std::uint64_t v) {
    v = ((v >> 1) & 0x5555555555555555u) | ((v & 0x5555555555555555u) << 1);
    v = ((v >> 2) & 0x3333333333333333u) | ((v & 0x3333333333333333u) << 2);
    v = ((v >> 4) & 0x0f0f0f0f0f0f0f0fu) | ((v & 0x0f0f0f0f0f0f0f0fu) << 4);
    return __builtin_bswap64(v);
  }
  // Adds one to the bits of `cursor` under `mask`, counted from the top bit down.
  static std::uint64_t reverse_increment(std::uint64_t cursor, std::uint64_t mask) {
    return reverse_bits(reverse_bits(cursor | ~mask) + 1);
  }

  Buckets now_;
  Buckets next_;
  std::size_t size_ = 0;
  std::size_t moved_ = 0;  // buckets of now_ that are empty for good because they were moved
};

}  // namespace weir::kv
