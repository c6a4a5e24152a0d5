// The primary that this server follows, as the rest of the server sees it. The link is in primary_link.hpp,
// which depends on the whole server and must not be included by what the server includes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "kv/settings/primary_address.hpp"

namespace weir::kv::repl {

class Primary {
 public:
  enum class Stage : std::uint8_t { waits, dials, greets, loads, follows };

  explicit Primary(PrimaryAddress address) : address_(std::move(address)) {}
  virtual ~Primary() = default;
  Primary(const Primary&) = delete;
  Primary& operator=(const Primary&) = delete;

  const PrimaryAddress& address() const { return address_; }
  Stage stage() const { return stage_; }
  bool up() const { return stage_ == Stage::follows; }
  std::int64_t heard_ms() const { return heard_ms_; }
  std::int64_t down_since_ms() const { return down_since_ms_; }
  virtual std::uint64_t loaded_bytes() const = 0;
  virtual std::uint64_t snapshot_bytes() const = 0;  // 0: unknown
  virtual std::int64_t read_position() const = 0;    // how much of the history has arrived, applied or not
  virtual std::string_view transport() const = 0;    // "tcp", "rdma"; empty: not connected

  virtual std::string peer_address() const = 0;  // empty: not connected
  // Breaks a connection, as if the primary had; look_at_clock() dials again.
  virtual void disconnect(const std::string& why) = 0;

  // Called at the start and then about once a second: dials, gives up, reports the position.
  virtual void look_at_clock() = 0;
  // Ends the link.
  virtual void close() = 0;
  // After close() and the end of the round: whether the transport has released everything here.
  virtual bool finished() const = 0;

 protected:
  const PrimaryAddress address_;
  Stage stage_ = Stage::waits;
  std::int64_t heard_ms_ = 0;
  std::int64_t down_since_ms_ = 0;
};

}  // namespace weir::kv::repl
