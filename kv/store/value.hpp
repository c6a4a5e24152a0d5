// What a key holds: one of six types. All but streams are inside the value.
//
// What is inside is moved by moving its bytes, so it must not hold its own address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "kv/text/bytes.hpp"

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
  explicit Value(List list);
  explicit Value(Set set);
  explicit Value(Hash hash);
  explicit Value(SortedSet zset);
  explicit Value(Stream* owned) : Value(owned, Type::stream) {}
  Value(Value&& other) noexcept : bytes_() { *this = std::move(other); }
  Value& operator=(Value&& other) noexcept {
    if (this == &other) return *this;
    destroy();
    if (other.type_ == Type::string) {
      new (&bytes_) Bytes(std::move(other.bytes_));
    } else {
      std::memcpy(&inside_, &other.inside_, sizeof inside_);
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
  List& list() { return *static_cast<List*>(inside()); }
  const List& list() const { return *static_cast<const List*>(inside()); }
  Set& set() { return *static_cast<Set*>(inside()); }
  const Set& set() const { return *static_cast<const Set*>(inside()); }
  Hash& hash() { return *static_cast<Hash*>(inside()); }
  const Hash& hash() const { return *static_cast<const Hash*>(inside()); }
  SortedSet& zset() { return *static_cast<SortedSet*>(inside()); }
  const SortedSet& zset() const { return *static_cast<const SortedSet*>(inside()); }
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

  Value copy() const;
  std::string_view encoding() const;  // OBJECT ENCODING
  std::size_t elements() const;       // that are freed one by one; 1 for a string
  std::size_t heap_size() const;      // bytes beside the value itself, estimated for collections

  // Frees about `most` elements; returns true if some are left. After the first call only this function and
  // the destructor may be called.
  bool free_some(std::size_t most);

 private:
  Value(void* owned, Type type) : inside_(), type_(type) { pointer_ = owned; }

  void* inside() { return std::launder(&inside_); }
  const void* inside() const { return std::launder(&inside_); }
  void destroy() {
    if (type_ == Type::string) {
      bytes_.~Bytes();
    } else {
      destroy_collection();
    }
  }
  void destroy_collection();

  struct alignas(8) Inside {
    std::byte bytes[24];
  };

  union {
    Bytes bytes_;
    Inside inside_;  // where the object is that is no string
    void* pointer_;  // to it, if it is not in here
  };
  Type type_ = Type::string;
  Made made_ = Made::given;
};

}  // namespace weir::kv
