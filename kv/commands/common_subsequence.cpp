// LCS: the longest common subsequence of two strings, by the usual table of lengths.
//
// Time and memory are the product of the lengths. A table larger than proto-max-bulk-len is refused.
#include <string>
#include <vector>

#include "kv/commands/command.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

struct LcsOptions {
  bool length_only = false;
  bool matches = false;
  bool match_lengths = false;
  std::int64_t least_match = 0;
};

bool parse_options(const Call& call, LcsOptions& options) {
  for (std::size_t i = 3; i < call.count(); ++i) {
    if (is_word(call[i], "IDX")) {
      options.matches = true;
    } else if (is_word(call[i], "LEN")) {
      options.length_only = true;
    } else if (is_word(call[i], "WITHMATCHLEN")) {
      options.match_lengths = true;
    } else if (is_word(call[i], "MINMATCHLEN") && i + 1 < call.count()) {
      if (!call.integer(++i, options.least_match)) return false;
    } else {
      call.syntax_error();
      return false;
    }
  }
  if (options.matches && options.length_only) {
    call.reply.error("ERR If you want both the length and indexes, please just use IDX.");
    return false;
  }
  return true;
}

// length(i, j): length of the longest common subsequence of the first i bytes of a and the first j of b.
class LengthTable {
 public:
  LengthTable(std::string_view a, std::string_view b)
      : width_(b.size() + 1), lengths_((a.size() + 1) * width_) {
    for (std::size_t i = 1; i <= a.size(); ++i) {
      for (std::size_t j = 1; j <= b.size(); ++j) {
        at(i, j) =
            a[i - 1] == b[j - 1] ? length(i - 1, j - 1) + 1 : std::max(length(i - 1, j), length(i, j - 1));
      }
    }
  }
  std::uint32_t length(std::size_t i, std::size_t j) const { return lengths_[i * width_ + j]; }
  static std::size_t bytes(std::string_view a, std::string_view b) {
    std::size_t cells = 0;
    const bool too_many = __builtin_mul_overflow(a.size() + 1, b.size() + 1, &cells);
    return too_many || cells > SIZE_MAX / sizeof(std::uint32_t) ? SIZE_MAX : cells * sizeof(std::uint32_t);
  }

 private:
  std::uint32_t& at(std::size_t i, std::size_t j) { return lengths_[i * width_ + j]; }

  std::size_t width_;
  std::vector<std::uint32_t> lengths_;
};

// Equal runs of the two strings, of which the subsequence consists.
struct Match {
  std::size_t a_first, b_first, size;
};

// From the end to the start, because the table is walked backwards.
std::vector<Match> matches(std::string_view a, std::string_view b, const LengthTable& table) {
  std::vector<Match> found;
  bool in_run = false;
  for (std::size_t i = a.size(), j = b.size(); i > 0 && j > 0;) {
    if (a[i - 1] == b[j - 1]) {
      --i;
      --j;
      if (!in_run) found.push_back({i, j, 0});
      found.back() = {i, j, found.back().size + 1};
      in_run = true;
    } else {
      // If both ways are equally long Redis goes back in b, and clients can see the difference.
      table.length(i - 1, j) > table.length(i, j - 1) ? --i : --j;
      in_run = false;
    }
  }
  return found;
}

void reply_matches(const Call& call, std::vector<Match> found, std::size_t length,
                   const LcsOptions& options) {
  std::erase_if(found,
                [&](const Match& m) { return static_cast<std::int64_t>(m.size) < options.least_match; });
  auto range = [&](std::size_t first, std::size_t size) {
    call.reply.array(2);
    call.reply.integer(static_cast<std::int64_t>(first));
    call.reply.integer(static_cast<std::int64_t>(first + size - 1));
  };
  call.reply.map(2);
  call.reply.bulk("matches");
  call.reply.array(found.size());
  for (const Match& match : found) {
    call.reply.array(options.match_lengths ? 3 : 2);
    range(match.a_first, match.size);
    range(match.b_first, match.size);
    if (options.match_lengths) call.reply.integer(static_cast<std::int64_t>(match.size));
  }
  call.reply.bulk("len");
  call.reply.integer(static_cast<std::int64_t>(length));
}

void lcs(const Call& call) {
  const Record* first = call.read(call[1]);
  const Record* second = call.read(call[2]);
  for (const Record* record : {first, second}) {
    if (record != nullptr && record->value.type() != Type::string) {
      return call.reply.error("ERR The specified keys must contain string values");
    }
  }
  LcsOptions options;
  if (!parse_options(call, options)) return;
  const std::string_view a = first == nullptr ? std::string_view() : first->value.text().view();
  const std::string_view b = second == nullptr ? std::string_view() : second->value.text().view();
  if (LengthTable::bytes(a, b) > static_cast<std::size_t>(call.server.settings.proto_max_bulk_len)) {
    return call.reply.error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
  }
  const LengthTable table(a, b);
  const std::size_t length = table.length(a.size(), b.size());
  if (options.length_only) return call.reply.integer(static_cast<std::int64_t>(length));
  std::vector<Match> found = matches(a, b, table);
  if (options.matches) return reply_matches(call, std::move(found), length, options);
  std::string text;
  for (auto match = found.rbegin(); match != found.rend(); ++match)
    text += a.substr(match->a_first, match->size);
  call.reply.bulk(text);
}

}  // namespace

std::span<const Command> common_subsequence_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"lcs", -3, readonly, 1, 2, 1, lcs, "string", "Finds what two strings have in common, in order."},
  };
  return commands;
}

}  // namespace weir::kv
