#include "kv/store/digest.hpp"

#include <openssl/sha.h>

#include <cstdio>
#include <string>

#include "kv/store/hash.hpp"
#include "kv/store/list.hpp"
#include "kv/store/set.hpp"
#include "kv/store/stream.hpp"
#include "kv/store/zset.hpp"

namespace weir::kv {

namespace {

// As Redis numbers them.
std::uint32_t number_of(Type type) {
  switch (type) {
    case Type::string:
      return 0;
    case Type::list:
      return 1;
    case Type::set:
      return 2;
    case Type::zset:
      return 3;
    case Type::hash:
      return 4;
    case Type::stream:
      return 6;
  }
  return 0;
}

void mix_zset(Digest& digest, const SortedSet& zset) {
  zset.for_each([&](std::string_view member, double score) {
    Digest one;
    one.mix(member);
    char text[128];
    const int size = std::snprintf(text, sizeof text, "%.17g", score);
    one.mix({text, static_cast<std::size_t>(size)});
    digest.add(one.bytes());
    return true;
  });
}

void mix_stream(Digest& digest, const Stream& stream) {
  StreamCursor cursor(stream, {}, StreamId::highest(), StreamCursor::Order::forward);
  while (cursor.next()) {
    digest.mix(std::to_string(cursor.id().ms) + '.' + std::to_string(cursor.id().seq));
    cursor.for_each_pair([&](std::string_view name, std::string_view value) {
      digest.mix(name);
      digest.mix(value);
    });
  }
}

void mix_contents(Digest& digest, const Value& value) {
  switch (value.type()) {
    case Type::string:
      return digest.mix(value.text().view());
    case Type::list:
      return value.list().for_each([&](std::string_view element) {
        digest.mix(element);
        return true;
      });
    case Type::set:
      return value.set().for_each([&](std::string_view member) {
        digest.add(member);
        return true;
      });
    case Type::hash:
      return value.hash().for_each_stored([&](std::string_view field, std::string_view content) {
        Digest one;
        one.mix(field);
        one.mix(content);
        if (value.hash().time_of(field) != FieldTimes::never) one.add("!!hexpire!!");
        digest.add(one.bytes());
      });
    case Type::zset:
      return mix_zset(digest, value.zset());
    case Type::stream:
      return mix_stream(digest, value.stream());
  }
}

}  // namespace

void Digest::add(std::string_view bytes) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> hash;
  SHA1(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash.data());
  for (std::size_t i = 0; i < value_.size(); ++i) value_[i] ^= hash[i];
}

void Digest::mix(std::string_view bytes) {
  add(bytes);
  const auto before = value_;
  SHA1(before.data(), before.size(), value_.data());
}

void Digest::mix_number(std::uint32_t number) {
  const char bytes[] = {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
                        static_cast<char>(number >> 8), static_cast<char>(number)};
  mix({bytes, sizeof bytes});
}

std::string Digest::hex() const {
  std::string text;
  for (const unsigned char byte : value_) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

void mix_value(Digest& digest, const Record& record) {
  digest.mix_number(number_of(record.value.type()));
  mix_contents(digest, record.value);
  if (record.expires_at_ms != Record::never) digest.add("!!expire!!");
}

Digest digest_of(std::span<const std::unique_ptr<Keyspace>> databases) {
  Digest all;
  for (const auto& db : databases) {
    if (db->size() == 0) continue;
    all.mix_number(static_cast<std::uint32_t>(db->index()));
    db->records().for_each([&](const Record& record) {
      Digest one;
      one.mix(record.key());
      mix_value(one, record);
      all.add(one.bytes());
      return true;
    });
  }
  return all;
}

}  // namespace weir::kv
