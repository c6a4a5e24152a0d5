// Queued output leaves the queue unchanged, wherever the writes are split, and memory that was lent or given
// to the queue is released as soon as it is sent.
#include "rpc/link/out_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "rpc/transport/transport.hpp"

namespace weir::rpc {
namespace {

std::string letters(std::size_t bytes, std::size_t salt) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + (i * 7 + salt * 3 + i / 26) % 26);
  return text;
}

// A block that counts how many are in use.
Buffer counted(const std::string& text, int& out) {
  struct Owner {
    std::string text;
    int& out;
  };
  auto owner = std::make_unique<Owner>(text, out);
  ++out;
  std::string& memory = owner->text;
  return {std::as_writable_bytes(std::span(memory)),
          [](void* mine, std::byte*, std::size_t) {
            const std::unique_ptr<Owner> gone(static_cast<Owner*>(mine));
            --gone->out;
          },
          owner.release()};
}

struct Piece {
  enum { encoded, attached, lent } how;
  std::size_t bytes;
};
struct Row {
  const char* name;
  std::vector<Piece> pieces;
};
void PrintTo(const Row& row, std::ostream* to) { *to << row.name; }

class OutQueueTest : public testing::TestWithParam<Row> {
 protected:
  static constexpr std::uint64_t lender = 77;

  void fill(OutQueue& queue) {
    for (const Piece& piece : GetParam().pieces) {
      const std::string text = letters(piece.bytes, all.size());
      all += text;
      if (piece.how == Piece::encoded) {
        queue.encoded().append(as_bytes(text));
      } else if (piece.how == Piece::attached) {
        queue.attach(counted(text, blocks_out));
      } else {
        lent.push_back(std::make_unique<std::string>(text));
        queue.attach(Buffer::borrowed(as_bytes(*lent.back())), lender);
      }
    }
  }
  static std::string waiting(const OutQueue& queue) {
    std::array<asio::const_buffer, 64> pieces;
    const std::size_t count = queue.gather(pieces);
    std::string text;
    for (const asio::const_buffer& piece : std::span(pieces).first(count)) {
      EXPECT_GT(piece.size(), 0u);
      text.append(static_cast<const char*>(piece.data()), piece.size());
    }
    return text;
  }

  std::string all;
  std::vector<std::unique_ptr<std::string>> lent;
  int blocks_out = 0;
};

TEST_P(OutQueueTest, comes_out_as_it_went_in_wherever_the_first_write_is_cut) {
  OutQueue whole;
  fill(whole);
  ASSERT_EQ(whole.bytes(), all.size());
  const std::string expected = all;
  const std::size_t step = expected.size() > 4000 ? expected.size() / 1999 : 1;
  for (std::size_t cut = 0; cut <= expected.size(); cut += step) {
    all.clear();
    OutQueue queue;
    fill(queue);
    queue.consume(cut);
    ASSERT_EQ(queue.bytes(), expected.size() - cut);
    ASSERT_EQ(queue.empty(), cut == expected.size());
    ASSERT_TRUE(waiting(queue) == expected.substr(cut)) << "cut at " << cut;
  }
}

TEST_P(OutQueueTest, comes_out_as_it_went_in_by_many_small_writes) {
  OutQueue queue;
  fill(queue);
  std::string came;
  for (std::size_t bytes = 1; !queue.empty(); bytes = bytes * 5 % 8191) {
    const std::string front = waiting(queue);
    const std::size_t taken = std::min(bytes, front.size());
    came += front.substr(0, taken);
    queue.consume(taken);
  }
  EXPECT_TRUE(came == all);
  EXPECT_EQ(blocks_out, 0);
}

TEST_P(OutQueueTest, lent_memory_may_go_once_the_queue_owns_a_copy) {
  for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, std::size_t{150}}) {
    all.clear();
    lent.clear();
    OutQueue queue;
    fill(queue);
    const std::size_t cut = std::min(sent, all.size());
    queue.consume(cut);
    queue.own(lender);
    for (const auto& text : lent) text->assign(text->size(), '#');
    EXPECT_TRUE(waiting(queue) == all.substr(cut)) << sent;
  }
}

// A frame's header and small parts are encoded while the memory that it refers to is only lent.
TEST(OutQueueLoans, go_before_the_byte_they_belong_to_and_may_go_once_owned) {
  for (const std::size_t cut : {0, 3, 10, 500, 1012, 1500}) {
    std::string first = letters(1000, 1), second = letters(700, 2);
    OutQueue queue;
    queue.encoded().append(as_bytes(std::string_view("0123456789abcdef")));
    queue.lend(10, as_bytes(first));
    queue.lend(14, as_bytes(second));
    const std::string all = "0123456789" + first + "abcd" + second + "ef";
    ASSERT_EQ(queue.bytes(), all.size());
    queue.consume(cut);
    queue.own_lent();
    first.assign(first.size(), '#');
    second.assign(second.size(), '#');
    queue.encoded().append(as_bytes(std::string_view("behind")));
    std::array<asio::const_buffer, 64> pieces;
    std::string waiting;
    for (const asio::const_buffer& piece : std::span(pieces).first(queue.gather(pieces)))
      waiting.append(static_cast<const char*>(piece.data()), piece.size());
    EXPECT_TRUE(waiting == (all + "behind").substr(cut)) << cut;
  }
}

TEST_P(OutQueueTest, clearing_lets_go_of_everything) {
  OutQueue queue;
  fill(queue);
  queue.consume(std::min<std::size_t>(150, all.size()));
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(blocks_out, 0);
  EXPECT_EQ(waiting(queue), "");
  all.clear();
  fill(queue);
  EXPECT_TRUE(waiting(queue) == all) << "and can be used again";
}

TEST_P(OutQueueTest, what_is_attached_is_one_piece_and_what_is_encoded_is_none_that_is_large) {
  OutQueue queue;
  fill(queue);
  std::array<asio::const_buffer, 64> pieces;
  const std::size_t count = queue.gather(pieces);
  std::vector<std::size_t> large, expected;
  for (const asio::const_buffer& piece : std::span(pieces).first(count))
    if (piece.size() >= large_piece_bytes) large.push_back(piece.size());
  for (const Piece& piece : GetParam().pieces)
    if (piece.how != Piece::encoded && piece.bytes >= large_piece_bytes) expected.push_back(piece.bytes);
  EXPECT_EQ(large, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Of, OutQueueTest,
    testing::Values(
        Row{"nothing", {}}, Row{"one_frame", {{Piece::encoded, 100}}},
        Row{"one_block", {{Piece::attached, 100}}},
        Row{"blocks_only", {{Piece::attached, 100}, {Piece::attached, 1}, {Piece::attached, 99}}},
        Row{"a_block_between_frames", {{Piece::encoded, 40}, {Piece::attached, 300}, {Piece::encoded, 41}}},
        Row{"a_block_with_an_attachment",
            {{Piece::encoded, 10}, {Piece::attached, 300}, {Piece::lent, 200}, {Piece::encoded, 5}}},
        Row{"attachments_of_one_call", {{Piece::lent, 100}, {Piece::encoded, 7}, {Piece::lent, 200}}},
        Row{"many_small_frames", {{Piece::encoded, 700'000}}},
        Row{"large_ones",
            {{Piece::encoded, 100'000},
             {Piece::attached, 300'000},
             {Piece::encoded, 1000},
             {Piece::attached, 65'536},
             {Piece::lent, 70'000},
             {Piece::encoded, 200'000}}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(OutQueue, a_block_is_let_go_of_with_its_last_byte) {
  int out = 0;
  OutQueue queue;
  queue.attach(counted(letters(100, 0), out));
  queue.attach(counted(letters(100, 1), out));
  queue.consume(99);
  EXPECT_EQ(out, 2);
  queue.consume(1);
  EXPECT_EQ(out, 1);
  queue.consume(100);
  EXPECT_EQ(out, 0);
}

TEST(OutQueue, more_than_there_are_pieces_for_comes_in_turns) {
  OutQueue queue;
  std::string all, came;
  int out = 0;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string text = letters(50 + i, i);
    i % 3 == 0 ? queue.attach(counted(text, out)) : queue.encoded().append(as_bytes(text));
    all += text;
  }
  while (!queue.empty()) {
    std::array<asio::const_buffer, 5> pieces;
    const std::size_t count = queue.gather(pieces);
    ASSERT_GT(count, 0u);
    std::size_t bytes = 0;
    for (const asio::const_buffer& piece : std::span(pieces).first(count)) {
      came.append(static_cast<const char*>(piece.data()), piece.size());
      bytes += piece.size();
    }
    queue.consume(bytes);
  }
  EXPECT_TRUE(came == all);
  EXPECT_EQ(out, 0);
}

}  // namespace
}  // namespace weir::rpc
