// Pushes that are added to the newest version of their name: whole arrays, which become versions one after
// the other in the order in which they arrived.
//
// The sum is made in the memory of the push, which has no readers: nobody sees half of one, and versions
// that are being read never change. It is made in steps, between which the hub's thread serves its peers. If
// somebody publishes under the name meanwhile, the addition fails and nothing was added.
//
// Threading: the hub's thread. Ownership: an addition and the memory belong to the caller, and an addition
// ends when its Stay does.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/arrays/metadata.hpp"
#include "tensor/arrays/sum.hpp"
#include "tensor/error.hpp"
#include "tensor/hub/catalogue.hpp"

namespace weir::tensor {

// Nothing can be added to an array whose elements are no numbers: bad_array.
Result<void> can_be_added(const Metadata& metadata);

class Sums {
 public:
  struct Addition {
    std::string name;
    const Metadata* metadata = nullptr;  // of `bytes`, all of which can be added
    std::span<std::byte> bytes;          // becomes the sum
    // With the number of the version to which it was added, 0 if there is none. Ends the Stay.
    std::function<void(Result<std::uint64_t>)> done;
  };

 private:
  struct Part {
    Adder add = nullptr;
    std::span<std::byte> to;
    std::span<const std::byte> from;
  };
  struct Entry {
    Addition addition;
    bool begun = false;
    VersionPtr base;
    std::vector<Part> parts;  // what is left, the last first
  };
  using Entries = std::list<Entry>;

 public:
  class Stay {
   public:
    Stay() = default;
    Stay(Sums& of, Entries::iterator at) : of_(&of), at_(at) {}
    Stay(Stay&& other) noexcept : of_(std::exchange(other.of_, nullptr)), at_(other.at_) {}
    Stay& operator=(Stay&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~Stay() {
      if (of_ != nullptr) of_->entries_.erase(at_);
    }
    bool is_there() const { return of_ != nullptr; }

   private:
    Sums* of_ = nullptr;
    Entries::iterator at_;
  };

  // `begun` is called when there is something to do after there was nothing: step() until empty().
  Sums(const Catalogue& catalogue, std::function<void()> begun)
      : catalogue_(catalogue), begun_(std::move(begun)) {}
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  Stay enter(Addition addition);
  bool empty() const { return entries_.empty(); }
  // Adds a megabyte, or ends an addition.
  void step();

 private:
  Result<void> begin(Entry& entry) const;

  const Catalogue& catalogue_;
  std::function<void()> begun_;
  Entries entries_;
};

}  // namespace weir::tensor
