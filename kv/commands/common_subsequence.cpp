// LCS: the longest common subsequence of two strings, by the usual table of lengths.
//
// Time and memory are the product of the lengths, so it is limited.
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"

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

// The usual table holds, for each i and j, the length for the first i bytes of a and the first j of b. Along
// a row each length is the one before it or one more, so a bit each is enough; and a row follows from the row
// above by an addition (H. Hyyro, "Bit-parallel LCS-length computation revisited", 2004), 64 bits at a time.
class StepTable {
 public:
  enum class Keep : bool { last_row, all_rows };

  StepTable(std::string_view a, std::string_view b, Keep keep) : words_((b.size() + 63) / 64) {
    std::array<std::vector<std::uint64_t>, 256> places;  // where in b each byte of a is
    for (const char each : a) places[byte(each)].resize(words_);
    for (std::size_t j = 0; j < b.size(); ++j)
      if (auto& of = places[byte(b[j])]; !of.empty()) of[j / 64] |= std::uint64_t{1} << (j % 64);

    std::vector<std::uint64_t> row(words_, ~std::uint64_t{0});
    if (keep == Keep::all_rows) rows_.reserve(a.size() * words_);
    for (const char each : a) {
      advance(row, places[byte(each)]);
      if (keep == Keep::all_rows) rows_.insert(rows_.end(), row.begin(), row.end());
    }
    length_ = 64 * words_;
    for (const std::uint64_t word : row) length_ -= static_cast<std::size_t>(std::popcount(word));
  }
  std::size_t length() const { return length_; }  // for all of both
  // Whether the length for i and j is one more than that for i and j - 1. Both from 1 on; needs all rows.
  bool steps(std::size_t i, std::size_t j) const {
    return (rows_[(i - 1) * words_ + (j - 1) / 64] >> ((j - 1) % 64) & 1) == 0;
  }

 private:
  static unsigned char byte(char each) { return static_cast<unsigned char>(each); }
  // A clear bit is a step. Bits beyond b stay set.
  static void advance(std::vector<std::uint64_t>& row, const std::vector<std::uint64_t>& places) {
    std::uint64_t carry = 0;
    for (std::size_t w = 0; w < row.size(); ++w) {
      const std::uint64_t old = row[w], half = old + (old & places[w]), sum = half + carry;
      carry = half < old || sum < half ? 1 : 0;
      row[w] = sum | (old & ~places[w]);
    }
  }

  std::size_t words_;
  std::vector<std::uint64_t> rows_;
  std::size_t length_ = 0;
};

// What Redis's table takes. It is refused where Redis refuses it, although ours is a 32nd of that.
std::size_t table_bytes(std::string_view a, std::string_view b) {
  std::size_t cells = 0;
  const bool too_many = __builtin_mul_overflow(a.size() + 1, b.size() + 1, &cells);
  return too_many || cells > SIZE_MAX / sizeof(std::uint32_t) ? SIZE_MAX : cells * sizeof(std::uint32_t);
}

// Equal runs of the two strings, of which the subsequence consists.
struct Match {
  std::size_t a_first, b_first, size;
};

// From the end to the start, because the table is walked backwards.
std::vector<Match> matches(std::string_view a, std::string_view b, const StepTable& table) {
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
      table.steps(i, j) ? --i : --j;
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
  if (table_bytes(a, b) > static_cast<std::size_t>(call.server.settings.proto_max_bulk_len)) {
    return call.reply.error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
  }
  const StepTable table(a, b, options.length_only ? StepTable::Keep::last_row : StepTable::Keep::all_rows);
  if (options.length_only) return call.reply.integer(static_cast<std::int64_t>(table.length()));
  std::vector<Match> found = matches(a, b, table);
  if (options.matches) return reply_matches(call, std::move(found), table.length(), options);
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
