// The messages of the tensor protocol: bytes <-> types (docs/tensors.md has the conversation). Pure.
//
// Every message begins with u8 kind, u8 flags, u16 zero, u32 index; numbers are little-endian, lengths of
// memory 64 bits. The index names a request from its TENSOR_REQUEST to its end. Its low six bits are a slot,
// of which the requesting side has each in use at most once; the upper bits count the uses of the slot, so
// that a late answer is recognised. Messages travel in frames of at most `message_bytes`, each with one
// message or several (a batch of requests, say). The parser accepts only what encode() can write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tensor/arrays/rows.hpp"
#include "tensor/error.hpp"

namespace weir::tensor::wire {

inline constexpr std::uint16_t version = 4;
inline constexpr std::size_t message_bytes = 4096;
inline constexpr std::uint32_t slots = 64;
inline constexpr std::size_t most_sources = 128;
inline constexpr std::size_t most_listed_extents = 250;  // in one PARTS
inline constexpr std::size_t most_inline_metadata = 3072;
inline constexpr std::size_t most_pushed_metadata = 2048;  // in a PUSH, besides its name

inline constexpr std::size_t most_word_bytes = 1024;

constexpr std::uint32_t slot_of(std::uint32_t index) { return index % slots; }

// Memory that the sender of a message lets its receiver write or read.
struct Memory {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t rkey = 0;
  bool operator==(const Memory&) const = default;
};

// TENSOR_REQUEST: the newest version of a name, if it is newer than `newer_than` of `generation`.
struct Request {
  std::uint32_t index = 0;
  bool wait = false;          // wait until there is such a version; else answer ERROR_STATUS
  bool locate = false;        // answer where it lies (LOCATION) instead of writing it
  bool follow = false;        // only a version newer than any sent to another `follow` request for this name
  std::uint32_t name_id = 0;  // 0: `name` is given instead
  std::uint64_t metadata_id = 0;  // the metadata that the destination was made for; 0: not known yet
  std::uint64_t newer_than = 0;
  std::uint64_t generation = 0;
  Memory to = {};
  std::string name = {};
  bool operator==(const Request&) const = default;
};

// PARTS: the TENSOR_REQUEST or TENSOR_RE_REQUEST with this index, which follows, is for these extents of the
// version's bytes, one after another. Several add up, to at most most_extents.
struct Parts {
  std::uint32_t index = 0;
  std::vector<Extent> extents;  // 1 to most_listed_extents, none empty
  bool operator==(const Parts&) const = default;
};

// META_DATA_UPDATE: the version's metadata are not those of `metadata_id`. The hub keeps the version until a
// RE_REQUEST or a CANCEL.
struct MetadataUpdate {
  std::uint32_t index = 0;
  std::uint32_t name_id = 0;
  std::uint64_t version = 0;
  std::uint64_t metadata_id = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t metadata_bytes = 0;
  std::vector<std::byte> metadata = {};  // complete, or empty if longer than most_inline_metadata
  bool operator==(const MetadataUpdate&) const = default;
};

// TENSOR_RE_REQUEST, with the index of the request. It is also the answer to a PUSH.
struct ReRequest {
  std::uint32_t index = 0;
  bool of_metadata = false;  // write the metadata, not the data; another RE_REQUEST follows
  bool locate = false;
  Memory to = {};
  bool operator==(const ReRequest&) const = default;
};

// ERROR_STATUS: the request is over. Code ok reports a push that succeeded.
struct ErrorStatus {
  std::uint32_t index = 0;
  Errc code = Errc::ok;
  std::uint64_t version = 0;
  std::string text;
  bool operator==(const ErrorStatus&) const = default;
};

// The requesting side gives up. Answered by ERROR_STATUS, unless another answer is already on its way.
struct Cancel {
  std::uint32_t index = 0;
  bool operator==(const Cancel&) const = default;
};

// Where the version lies, in order; the hub keeps it there until DONE.
struct Location {
  std::uint32_t index = 0;
  std::uint64_t version = 0;
  std::vector<Memory> sources;
  bool operator==(const Location&) const = default;
};

struct Done {
  std::uint32_t index = 0;
  bool operator==(const Done&) const = default;
};

// PUSH, an array for the hub. It answers RE_REQUEST, and ERROR_STATUS once the array is published or refused.
struct Push {
  std::uint32_t index = 0;
  bool add = false;  // the version is the sum of the newest one and this
  std::uint64_t data_bytes = 0;
  std::uint64_t metadata_bytes = 0;
  std::string name = {};
  std::vector<std::byte> metadata = {};  // complete, or empty if longer than most_pushed_metadata
  bool operator==(const Push&) const = default;
};

// AUTH: one step of the exchange in which both ends show that they know the token (admission.hpp). Index 0.
struct Auth {
  enum class Step : std::uint32_t { hello = 1, challenge = 2, proof = 3, welcome = 4 };
  std::uint32_t index = 0;
  Step step = Step::hello;
  std::array<std::byte, 32> bytes = {};
  bool operator==(const Auth&) const = default;
};

// LEASE_DONE: the sender is done with a version that was lent, and leaves a word. Answered by ERROR_STATUS.
struct LeaseDone {
  std::uint32_t index = 0;
  std::uint64_t version = 0;
  std::uint64_t generation = 0;
  std::string name = {};
  std::string word = {};  // at most most_word_bytes
  bool operator==(const LeaseDone&) const = default;
};

using Message = std::variant<Request, MetadataUpdate, ReRequest, ErrorStatus, Cancel, Location, Done, Push,
                             Auth, Parts, LeaseDone>;

std::uint32_t index_of(const Message&);
// Texts, names and metadata must be within their limits.
std::vector<std::byte> encode(const Message&);
// Takes the first message of a frame; `frame` becomes the rest. Errc::protocol.
Result<Message> take_message(std::span<const std::byte>& frame);

// Ends a transfer: written to the slot's place in the requesting side's table, with the index as the
// immediate of that write.
struct Record {
  std::uint64_t generation = 0;
  std::uint64_t version = 0;
  std::uint64_t bytes = 0;
  std::uint32_t index = 0;
  std::uint32_t kind = 0;  // 0: data, 1: metadata
  bool operator==(const Record&) const = default;
};
inline constexpr std::size_t record_bytes = 32;
std::vector<std::byte> encode(const Record&);
Record parse_record(std::span<const std::byte, record_bytes>);

// The handshake: each end sends one.
struct Greeting {
  std::uint16_t window = 0;      // messages and records that the other end may have in flight; 2 to 1024
  std::uint64_t generation = 0;  // a hub's; 0: the sender is not a hub
  Memory records;                // `slots` records of record_bytes
  bool operator==(const Greeting&) const = default;
};
inline constexpr std::size_t greeting_bytes = 36;
std::vector<std::byte> encode(const Greeting&);
// More bytes than greeting_bytes may follow, because transports pad.
Result<Greeting> parse_greeting(std::span<const std::byte>);

}  // namespace weir::tensor::wire
