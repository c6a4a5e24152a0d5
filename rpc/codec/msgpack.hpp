// MessagePack, written and read in the order of the bytes. Pure.
//
// The writer takes the shortest form of each value. The reader checks every length against what is there,
// allocates nothing and never reads a byte twice; its first failure stays, with a sentence that says what was
// expected and what was found. https://github.com/msgpack/msgpack/blob/master/spec.md
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "rpc/wire/body.hpp"
#include "rpc/wire/bytes.hpp"

namespace weir::rpc {

class MsgpackWriter {
 public:
  explicit MsgpackWriter(BodyPlace place) : place_(place), out_(place.encoded) {}
  // A writer at the same place that copies everything it is given: for data that does not stay.
  MsgpackWriter copying() const { return MsgpackWriter(out_); }

  void nil() { byte(0xc0); }
  void boolean(bool value) { byte(value ? 0xc3 : 0xc2); }
  void unsigned_integer(std::uint64_t value) {
    if (value < 128) return byte(static_cast<std::uint8_t>(value));
    wide_unsigned(value);
  }
  void signed_integer(std::int64_t value) {
    if (value >= 0) return unsigned_integer(static_cast<std::uint64_t>(value));
    if (value >= -32) return byte(static_cast<std::uint8_t>(value));
    wide_negative(value);
  }
  void real32(float value) { tagged(0xca, std::bit_cast<std::uint32_t>(value)); }
  void real64(double value) { tagged(0xcb, std::bit_cast<std::uint64_t>(value)); }
  void text(std::string_view value);
  void binary(std::span<const std::byte> value);
  void array(std::size_t elements);
  void map(std::size_t pairs);

 private:
  void byte(std::uint8_t value) { *out_.grow(1) = std::byte{value}; }
  template <class Integer>
  void tagged(std::uint8_t tag, Integer value);
  void wide_unsigned(std::uint64_t value);
  void wide_negative(std::int64_t value);
  void sized(std::size_t size, std::uint8_t tag8, std::uint8_t tag16, std::uint8_t tag32);

  BodyPlace place_;
  Bytes& out_;  // of place_
};

// Counts the bytes that the writer would write, so that a block for all of them can be allocated first.
class MsgpackSizer {
 public:
  const BodySize& size() const { return size_; }

  void nil() { size_.bytes += 1; }
  void boolean(bool) { size_.bytes += 1; }
  void unsigned_integer(std::uint64_t value) {
    size_.bytes += value < 128 ? 1 : value <= 0xff ? 2 : value <= 0xffff ? 3 : value <= 0xffffffff ? 5 : 9;
  }
  void signed_integer(std::int64_t value) {
    if (value >= 0) return unsigned_integer(static_cast<std::uint64_t>(value));
    size_.bytes += value >= -32         ? 1
                   : value >= INT8_MIN  ? 2
                   : value >= INT16_MIN ? 3
                   : value >= INT32_MIN ? 5
                                        : 9;
  }
  void real32(float) { size_.bytes += 5; }
  void real64(double) { size_.bytes += 9; }
  void text(std::string_view value) {
    size_.bytes += value.size() < 32 ? 1 : value.size() <= 0xff ? 2 : value.size() <= 0xffff ? 3 : 5;
    contents(value.size());
  }
  void binary(std::span<const std::byte> value) {
    size_.bytes += value.size() <= 0xff ? 2 : value.size() <= 0xffff ? 3 : 5;
    contents(value.size());
  }
  void array(std::size_t elements) { size_.bytes += elements < 16 ? 1 : elements <= 0xffff ? 3 : 5; }
  void map(std::size_t pairs) { array(pairs); }

 private:
  void contents(std::size_t bytes) {
    const BodySize more = BodySize::of_contents(bytes);
    size_.bytes += more.bytes;
    size_.referable += more.referable;
  }

  BodySize size_;
};

enum class MsgpackType : std::uint8_t {
  end,
  nil,
  boolean,
  integer,
  real,
  text,
  binary,
  array,
  map,
  extension
};
std::string_view name_of(MsgpackType);

// How much memory the decoded data may take: one byte from a peer can become an empty struct of 768 bytes.
struct DecodeRoom {
  std::size_t left = SIZE_MAX;  // bytes
  std::size_t used = 0;
};

class MsgpackReader {
 public:
  static constexpr int deepest = 64;  // nested arrays and maps

  explicit MsgpackReader(std::span<const std::byte> bytes, std::size_t room = SIZE_MAX)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), room_(room) {}

  bool failed() const { return failed_; }
  bool at_end() const { return at_ == end_; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
  const std::string& why() const { return why_; }
  // Always false, so that readers can return it. The first reason stays.
  bool fail(std::string_view why);
  // Call before allocating memory for decoded data: `count` things of `bytes` each. Returns false if that
  // exceeds the room left. Readers of types of your own (Wire) must call it, too.
  bool charge(std::size_t count, std::size_t bytes) {
    if (bytes != 0 && count > room_ / bytes) return beyond_room();
    room_ -= count * bytes;
    return true;
  }
  std::size_t room() const { return room_; }
  bool too_large() const { return too_large_; }
  // Puts "where: " before the reason.
  bool inside(std::string_view where);

  MsgpackType peek() const;
  bool take_nil();  // if it is next
  bool boolean(bool& value);
  bool unsigned_integer(std::uint64_t& value);
  bool signed_integer(std::int64_t& value);
  bool real(double& value);  // integers, too
  bool text(std::string_view& value);
  bool binary(std::span<const std::byte>& value);  // text, too
  // How many elements or pairs follow: each needs at least one byte, so never more than remaining().
  bool array(std::size_t& elements);
  bool map(std::size_t& pairs);
  bool skip();  // one value, whatever it is

  // Around what is inside an array or a map.
  bool enter() { return ++depth_ <= deepest || fail("nested too deeply"); }
  void leave() { --depth_; }

 private:
  struct Number {
    enum class Kind : std::uint8_t { negative, positive, real };
    Kind kind = Kind::positive;
    std::uint64_t bits = 0;
    double as_real = 0;
  };
  bool beyond_room();
  bool number(Number& value);
  bool expected(std::string_view what);
  bool big_endian(unsigned bytes, std::uint64_t& value);
  bool block(std::uint64_t bytes, std::span<const std::byte>& value);
  // The length in a value's head: `fix` are the low bits of short forms, tag8 is 0 where there is none.
  bool length(std::uint8_t tag, std::uint8_t tag8, std::uint64_t& size);
  bool text_or_binary(bool text_only, std::span<const std::byte>& value);
  bool count(MsgpackType type, std::size_t& elements);
  std::uint8_t tag() const { return std::to_integer<std::uint8_t>(*at_); }

  const std::byte* at_;
  const std::byte* end_;
  std::size_t room_;  // bytes that may still be charged
  bool too_large_ = false;
  int depth_ = 0;
  bool failed_ = false;
  std::string why_;
};

}  // namespace weir::rpc
