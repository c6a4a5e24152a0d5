#include "kv/rdb/file_reader.hpp"

#include "kv/text/number.hpp"

namespace weir::kv::rdb {

namespace {

constexpr int first_with_checksum = 5;

class FileReading {
 public:
  FileReading(Source& source, const Limits& limits, Checked checksum, Target& target)
      : in_(source), limits_(limits), checked_(checksum), target_(target) {}

  std::expected<std::uint64_t, Error> all() {
    header();
    while (!in_.failed() && !ended_) {
      const std::uint8_t code = in_.byte();
      if (in_.failed()) break;
      if (code >= first_opcode) {
        opcode(static_cast<Opcode>(code));
      } else {
        record(static_cast<ValueType>(code));
      }
    }
    if (in_.failed()) return std::unexpected(in_.error());
    return in_.bytes_read();
  }

 private:
  void refuse_if(const std::string& reason) {
    if (!reason.empty()) in_.corrupt(reason);
  }

  void header() {
    const std::string_view bytes = in_.raw(header_size);
    if (in_.failed()) return;
    const std::string_view name = bytes.starts_with(magic_of_valkey) ? magic_of_valkey : magic;
    // Four digits, with leading zeros.
    std::string_view digits = bytes.substr(name.size());
    while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
    const auto version = parse_int(digits);
    if (!bytes.starts_with(name) || !version || *version < 1) return in_.corrupt("this is no RDB file");
    if (name == magic && *version > newest_version) {
      return in_.fail(Error::Kind::unsupported, "its version " + std::to_string(*version) +
                                                    " is newer than " + std::to_string(newest_version) +
                                                    ", the newest known here");
    }
    version_ = static_cast<int>(*version);
  }

  void opcode(Opcode code) {
    switch (code) {
      case Opcode::slot_import:
        in_.text();  // the name of the migration
        for (std::uint64_t ranges = in_.length(); ranges != 0 && !in_.failed(); --ranges) skip_lengths(2);
        return;
      case Opcode::slot_info:
        return skip_lengths(3);
      case Opcode::aux: {
        const std::string name(in_.text());
        const std::string_view value = in_.text();
        if (!in_.failed()) target_.aux(name, value);
        return;
      }
      case Opcode::database: {
        const std::uint64_t number = in_.length();
        if (!in_.failed()) refuse_if(target_.select(number));
        return;
      }
      case Opcode::sizes: {
        const std::uint64_t keys = in_.length();
        const std::uint64_t expiring = in_.length();
        if (!in_.failed()) target_.sizes(keys, expiring);
        return;
      }
      case Opcode::expires_at_ms:
        about_.expires_at_ms = in_.milliseconds();
        return;
      case Opcode::expires_at_s:
        about_.expires_at_ms = std::int64_t{in_.seconds()} * 1000;
        return;
      case Opcode::idle_s:
        about_.idle_s = in_.length();
        return;
      case Opcode::frequency:
        about_.frequency = in_.byte();
        return;
      case Opcode::function: {
        const std::string_view text = in_.text();
        if (!in_.failed()) refuse_if(target_.function(text));
        return;
      }
      case Opcode::old_function:
        return in_.fail(Error::Kind::unsupported, "a function in the format of a release candidate");
      case Opcode::module_aux:
        return module_aux();
      case Opcode::end:
        return end();
    }
  }

  void skip_lengths(int count) {
    while (count-- > 0) in_.length();
  }

  // Skips data that a module stores besides its values; their encoding says how long they are.
  void module_aux() {
    enum : std::uint64_t { done = 0, integer = 1, natural = 2, single = 3, real = 4, text = 5 };
    in_.length();  // the module
    in_.length();
    in_.length();  // when the module wants them
    while (!in_.failed()) {
      switch (in_.length()) {
        case done:
          return;
        case integer:
        case natural:
          in_.length();
          break;
        case single:
          in_.four_byte_float();
          break;
        case real:
          in_.eight_byte_double();
          break;
        case text:
          in_.text();
          break;
        default:
          in_.corrupt("a module's data is damaged");
      }
    }
  }

  void record(ValueType type) {
    if (!target_.go_on(in_.bytes_read())) return in_.fail(Error::Kind::stopped, "stopped");
    const Bytes key(in_.text());
    if (in_.failed()) return;
    target_.coming(key.view());
    if (type == ValueType::hash_of_valkey && version_ < first_of_valkey)
      return in_.fail(Error::Kind::unsupported, "a hash in the format of a release candidate of Redis 7.4");
    auto value = read_value(in_, type, limits_);
    if (!value) {
      if (in_.error().kind != Error::Kind::truncated)
        in_.explain("key '" + std::string(key.view().substr(0, 64)) + "': ");
      return;
    }
    // Like Redis, skip empty collections, which old versions wrote.
    if (may_be_kept(*value)) refuse_if(target_.record(key.view(), std::move(*value), about_));
    about_ = {};
  }

  void end() {
    ended_ = true;
    if (version_ < first_with_checksum) return;
    const std::uint64_t sum = in_.sum();
    const std::uint64_t stored = in_.stored_checksum();
    if (in_.failed() || checked_ == Checked::no || stored == 0) return;
    if (sum != stored) in_.corrupt("RDB CRC error: the checksum is wrong, the file is damaged");
  }

  Reader in_;
  const Limits limits_;
  Checked checked_;
  Target& target_;
  About about_;
  int version_ = 0;
  bool ended_ = false;
};

}  // namespace

std::expected<std::uint64_t, Error> read_file(Source& source, const Limits& limits, Checked checksum,
                                              Target& target) {
  return FileReading(source, limits, checksum, target).all();
}

}  // namespace weir::kv::rdb
