// A text as it lies in a collection: bytes in one of its pieces of memory, an integer, or a string of its
// own.
//
// It is valid until the collection changes. Threading: none.
#pragma once

#include <string_view>

#include "kv/store/listpack_element.hpp"
#include "kv/text/bytes.hpp"

namespace weir::kv {

class StoredText {
 public:
  StoredText() {}
  explicit StoredText(std::string_view text) : data_(text.data()), size_(text.size()) {}
  explicit StoredText(const Bytes& string) : StoredText(string.view()) { string_ = &string; }
  static StoredText of(listpack::Place element) {
    StoredText stored;
    const std::string_view text = listpack::text(element, stored.digits_);
    stored.data_ = listpack::is_integer(element) ? nullptr : text.data();
    stored.size_ = text.size();
    return stored;
  }

  std::string_view view() const { return {data_ != nullptr ? data_ : digits_.data(), size_}; }
  operator std::string_view() const { return view(); }
  // The whole string, if it is one: a reply can refer to it instead of copying it. Else null.
  const Bytes* string() const { return string_; }
  // A string that outlives the collection's next change.
  Bytes kept() const { return string_ != nullptr ? *string_ : Bytes(view()); }

 private:
  const char* data_ = nullptr;  // null: it is in digits_
  std::size_t size_ = 0;
  const Bytes* string_ = nullptr;
  IntText digits_;  // unset for most
};

// A text that is to be stored, and the block that it fills, if it came in one: that is shared and not copied.
struct GivenText {
  std::string_view text;
  Blob* block = nullptr;

  GivenText(std::string_view given) : text(given) {}
  GivenText(std::string_view given, Blob* of) : text(given), block(of) {}
  GivenText(const Bytes& string) : text(string.view()), block(string.shared()) {}
  GivenText(const StoredText& stored)
      : text(stored.view()), block(stored.string() != nullptr ? stored.string()->shared() : nullptr) {}

  Bytes kept() const { return block != nullptr ? Bytes(BlobRef::share(block)) : Bytes(text); }
};

}  // namespace weir::kv
