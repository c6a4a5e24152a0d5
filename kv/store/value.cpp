#include "kv/store/value.hpp"

#include "kv/store/hash.hpp"
#include "kv/store/list.hpp"
#include "kv/store/set.hpp"
#include "kv/store/stream.hpp"
#include "kv/store/zset.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

std::string_view type_name(Type type) {
  switch (type) {
    case Type::string:
      return "string";
    case Type::list:
      return "list";
    case Type::set:
      return "set";
    case Type::hash:
      return "hash";
    case Type::zset:
      return "zset";
    case Type::stream:
      return "stream";
  }
  return "none";
}

static_assert(sizeof(List) <= 24 && alignof(List) <= 8);
static_assert(sizeof(Set) <= 24 && alignof(Set) <= 8);
static_assert(sizeof(Hash) <= 24 && alignof(Hash) <= 8);
static_assert(sizeof(SortedSet) <= 24 && alignof(SortedSet) <= 8);

Value::Value(List list) : inside_(), type_(Type::list) { new (&inside_) List(std::move(list)); }
Value::Value(Set set) : inside_(), type_(Type::set) { new (&inside_) Set(std::move(set)); }
Value::Value(Hash hash) : inside_(), type_(Type::hash) { new (&inside_) Hash(std::move(hash)); }
Value::Value(SortedSet zset) : inside_(), type_(Type::zset) { new (&inside_) SortedSet(std::move(zset)); }

void Value::destroy_collection() {
  switch (type_) {
    case Type::string:
      break;
    case Type::list:
      list().~List();
      break;
    case Type::set:
      set().~Set();
      break;
    case Type::hash:
      hash().~Hash();
      break;
    case Type::zset:
      zset().~SortedSet();
      break;
    case Type::stream:
      delete &stream();
      break;
  }
}

Value Value::copy() const {
  switch (type_) {
    case Type::string:
      break;
    case Type::list:
      return Value(list().copy());
    case Type::set:
      return Value(set().copy());
    case Type::hash:
      return Value(hash().copy());
    case Type::zset:
      return Value(zset().copy());
    case Type::stream:
      return Value(stream().copy().release());
  }
  Value text{Bytes(bytes_)};
  text.made_ = made_;
  return text;
}

std::string_view Value::encoding() const {
  constexpr std::size_t embedded = 44;  // Redis keeps strings up to here in one block with their header
  switch (type_) {
    case Type::string:
      break;
    case Type::list:
      return list().one_pack() ? "listpack" : "quicklist";
    case Type::set:
      switch (set().form()) {
        case Set::Form::integers:
          return "intset";
        case Set::Form::packed:
          return "listpack";
        case Set::Form::table:
          break;
      }
      return "hashtable";
    case Type::hash:
      if (!hash().small()) return "hashtable";
      return hash().times() == nullptr ? "listpack" : "listpackex";
    case Type::zset:
      return zset().small() ? "listpack" : "skiplist";
    case Type::stream:
      return "stream";
  }
  const std::string_view text = bytes_.view();
  if (made_ == Made::edited) return "raw";
  if (made_ == Made::given && parse_int(text)) return "int";
  return text.size() <= embedded ? "embstr" : "raw";
}

std::size_t Value::elements() const {
  switch (type_) {
    case Type::string:
      break;
    case Type::list:
      return list().size();
    case Type::set:
      return set().size();
    case Type::hash:
      return hash().size();
    case Type::zset:
      return zset().size();
    case Type::stream:
      return stream().pieces();
  }
  return 1;
}

bool Value::free_some(std::size_t most) {
  switch (type_) {
    case Type::string:
      break;
    case Type::list:
      return list().free_some(most);
    case Type::set:
      return set().free_some(most);
    case Type::hash:
      return hash().free_some(most);
    case Type::zset:
      return zset().free_some(most);
    case Type::stream:
      return stream().free_some(most);
  }
  return false;
}

std::size_t Value::heap_size() const {
  switch (type_) {
    case Type::string:
      break;
    case Type::list:
      return list().heap_size();
    case Type::set:
      return set().heap_size();
    case Type::hash:
      return hash().heap_size();
    case Type::zset:
      return zset().heap_size();
    case Type::stream:
      return sizeof(Stream) + stream().heap_size();
  }
  return bytes_.heap_size();
}

}  // namespace weir::kv
