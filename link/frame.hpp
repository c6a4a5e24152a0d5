// The format of one packet on a link connection: a fixed header, a body, and up to eight descriptors beside
// it.
//
// Both ends are processes of one host, so integers are in the host's byte order. A packet is not trusted:
// receive() yields a Frame only if every field is legal, and closes the descriptors of an illegal packet. No
// state; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "link/same_host.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

enum class FrameType : std::uint8_t {
  hello = 1,       // the first frame each way: who I am, my greeting
  refuse = 2,      // instead of a hello: why not; the connection ends
  message = 3,     // kind, body; `request` non-zero asks for a reply
  reply = 4,       // answers `request`
  no_handler = 5,  // answers `request`: nobody here handles its kind
};
inline constexpr FrameType last_frame_type = FrameType::no_handler;

struct FrameHeader {
  std::uint32_t magic;
  std::uint8_t version;
  FrameType type;
  std::uint16_t kind;
  std::uint32_t body_bytes;
  std::uint16_t fd_count;
  std::uint16_t zero;
  std::uint64_t request;
};
static_assert(sizeof(FrameHeader) == 24);

inline constexpr std::uint32_t frame_magic = 0x52494557;  // "WEIR"
inline constexpr std::uint8_t frame_version = 1;

// Opens the body of a hello; the greeting's own bytes follow.
struct HelloPrefix {
  std::uint16_t slot;
  std::uint16_t zero[3];
  std::uint64_t incarnation;
};
static_assert(sizeof(HelloPrefix) == 16);

inline constexpr std::size_t max_body_bytes = sizeof(HelloPrefix) + max_message_bytes;
inline constexpr std::size_t max_frame_bytes = sizeof(FrameHeader) + max_body_bytes;

// Why a hello was refused; the first byte of a refuse frame's body.
enum class Refusal : std::uint8_t {
  duplicate = 1,  // we two have or are just opening another connection
  foreign = 2,    // not this user's process, or not this slot
};

struct Frame {
  FrameType type;
  std::uint16_t kind;
  std::uint64_t request;
  std::vector<std::byte> body;
  std::vector<UniqueFd> fds;
};

std::vector<std::byte> encode_frame(FrameType type, std::uint16_t kind, std::uint64_t request,
                                    std::span<const std::byte> body, std::size_t fd_count);

// The checks of one packet's bytes and of the number of descriptors that came with it. Nothing: malformed.
std::optional<Frame> parse_frame(std::span<const std::byte> packet, std::vector<UniqueFd> fds);

struct HelloView {
  HelloPrefix prefix;
  std::span<const std::byte> greeting;
};
std::optional<HelloView> parse_hello(std::span<const std::byte> body);

// Reads one packet from a non-blocking SOCK_SEQPACKET socket.
struct WouldBlock {};
struct Ended {};      // orderly end, reset, or any other error of the socket
struct Malformed {};  // its descriptors are closed already
using Received = std::variant<Frame, WouldBlock, Ended, Malformed>;
Received receive_frame(int socket);

// Writes one packet without blocking. 0, or the errno.
int transmit_frame(int socket, std::span<const std::byte> packet, std::span<const int> fds);

}  // namespace weir::link
