// What a key holds: one of six types. A string is inside the value; the others are objects of their own.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "kv/bytes.hpp"

namespace weir::kv {

class List;
class Set;
class Hash;
class SortedSet;
class Stream;

enum class Type : std::uint8_t { string, list, set, hash, zset, stream };
std::string_view type_name(Type type);

class Value {
 public:
  Value() : bytes_() {}
  explicit Value(Bytes text) : bytes_(std::move(text)) {}
  explicit Value(List* owned) : pointer_(owned), type_(Type::list) {}
  explicit Value(Set* owned) : pointer_(owned), type_(Type::set) {}
  explicit Value(Hash* owned) : pointer_(owned), type_(Type::hash) {}
  explicit Value(SortedSet* owned) : pointer_(owned), type_(Type::zset) {}
  explicit Value(Stream* owned) : pointer_(owned), type_(Type::stream) {}
  Value(Value&& other) noexcept : bytes_() { *this = std::move(other); }
  Value& operator=(Value&& other) noexcept {
    if (this == &other) return *this;
    destroy();
    if (other.type_ == Type::string) {
      new (&bytes_) Bytes(std::move(other.bytes_));
    } else {
      pointer_ = other.pointer_;
      new (&other.bytes_) Bytes();
    }
    type_ = std::exchange(other.type_, Type::string);
    made_ = other.made_;
    return *this;
  }
  ~Value() { destroy(); }

  Type type() const { return type_; }
  Bytes& text() { return bytes_; }
  const Bytes& text() const { return bytes_; }
  List& list() const { return *static_cast<List*>(pointer_); }
  Set& set() const { return *static_cast<Set*>(pointer_); }
  Hash& hash() const { return *static_cast<Hash*>(pointer_); }
  SortedSet& zset() const { return *static_cast<SortedSet*>(pointer_); }
  Stream& stream() const { return *static_cast<Stream*>(pointer_); }

  // How a string came to be, which OBJECT ENCODING tells: one that was changed in place (APPEND, SETBIT) is
  // "raw" whatever its length, and one that was computed as text (INCRBYFLOAT) no "int" though it may look
  // so.
  enum class Made : std::uint8_t { given, computed, edited };

  // Overwrites with a string, a given one.
  void assign(std::string_view text) {
    if (type_ != Type::string) *this = Value();
    bytes_.assign(text);
    made_ = Made::given;
  }
  void mark(Made made) { made_ = made; }
  Made made() const { return made_; }

  Value copy(std::uint64_t seed) const;  // `seed` for a sorted set
  std::string_view encoding() const;     // OBJECT ENCODING
  std::size_t elements() const;          // that are freed one by one; 1 for a string
  std::size_t heap_size() const;         // bytes beside the value itself, estimated for collections

  // Frees about `most` elements; returns true if some are left. After the first call only this function and
  // the destructor may be called.
  bool free_some(std::size_t most);

 private:
  void destroy() {
    if (type_ == Type::string) {
      bytes_.~Bytes();
    } else {
      destroy_collection();
    }
  }
  void destroy_collection();

  union {
    Bytes bytes_;
    void* pointer_;
  };
  Type type_ = Type::string;
  Made made_ = Made::given;
};

}  // namespace weir::kv
