// The append-only log's manifest, and the reader of its files: what they accept and refuse.
#include <gtest/gtest.h>

#include "kv/aof/log_reader.hpp"
#include "kv/aof/manifest.hpp"

namespace weir::kv::aof {
namespace {

TEST(AofManifest, is_read_as_redis_writes_it) {
  const auto manifest = parse_manifest(
      "file appendonly.aof.2.base.rdb seq 2 type b\n"
      "file appendonly.aof.1.base.rdb seq 1 type h\n"
      "file appendonly.aof.3.incr.aof seq 3 type i\n"
      "file appendonly.aof.4.incr.aof seq 4 type i startoffset 10\n"
      "# written by hand\n");
  ASSERT_TRUE(manifest) << manifest.error();
  EXPECT_EQ(manifest->base, (LogFile{"appendonly.aof.2.base.rdb", 2}));
  EXPECT_EQ(manifest->history, (std::vector<LogFile>{{"appendonly.aof.1.base.rdb", 1}}));
  EXPECT_EQ(manifest->increments,
            (std::vector<LogFile>{{"appendonly.aof.3.incr.aof", 3}, {"appendonly.aof.4.incr.aof", 4}}));
}

TEST(AofManifest, written_out_is_read_as_the_same) {
  const Manifest manifest{LogFile{"a \"b\"\n.base.rdb", 7}, {{"x.1", 1}, {"x.2", 2}}, {{"old", 3}}};
  EXPECT_EQ(parse_manifest(manifest_text(manifest)), manifest);
}

TEST(AofManifest, is_refused_when_it_is_not_one) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row table[] = {
      {"", "Found an empty AOF manifest"},
      {"# nothing\n", "Found an empty AOF manifest"},
      {"\n", "Invalid AOF manifest file format"},
      {"file a seq 1 type b", "The AOF manifest file contains too long line"},
      {"file a seq 1\n", "Invalid AOF manifest file format"},
      {"file a seq 0 type b\n", "Invalid AOF manifest file format"},
      {"file a seq -1 type i\n", "Invalid AOF manifest file format"},
      {"file a seq 99999999999999999999 type i\n", "Invalid AOF manifest file format"},
      {"file a seq 1 type x\n", "Invalid AOF manifest file format"},
      {"file a/b seq 1 type b\n", "Invalid AOF manifest file format"},
      {"file .. seq 1 type b\n", "Invalid AOF manifest file format"},
      {"file \"a\\x00b\" seq 1 type b\n", "Invalid AOF manifest file format"},
      {"file \"a seq 1 type b\n", "Invalid AOF manifest file format"},
      {"file a seq 1 type b\nfile b seq 2 type b\n", "Found duplicate base file information"},
      {"file a seq 2 type i\nfile b seq 2 type i\n", "Found a non-monotonic sequence number"},
      {"file a seq 1 type i\nfile a seq 2 type i\n", "Found a file name twice"},
  };
  for (const auto& [text, error] : table) {
    const auto manifest = parse_manifest(text);
    ASSERT_FALSE(manifest) << text;
    EXPECT_EQ(manifest.error(), error) << text;
  }
}

// Delivers a text in pieces.
LogReader reader_of(std::string_view& text, std::size_t step) {
  return LogReader([&text, step](char* place, std::size_t most) {
    const std::size_t n = std::min({most, step, text.size()});
    text.copy(place, n);
    text.remove_prefix(n);
    return n;
  });
}

TEST(AofLogReader, tells_where_a_file_stops_being_requests) {
  using Next = LogReader::Next;
  struct Row {
    std::string_view text;
    int requests;
    Next end;
    std::uint64_t whole;
  };
  const Row table[] = {
      {"", 0, Next::end, 0},
      {"*1\r\n$4\r\nPING\r\n", 1, Next::end, 14},
      {"#TS:17\r\n*1\r\n$4\r\nPING\r\n#end\n", 1, Next::end, 27},
      {"*1\r\n$4\r\nPING\r\n#end", 1, Next::truncated, 14},
      {"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$5\r\nab", 1, Next::truncated, 14},
      {"*1\r\n$4\r\nPING\r", 0, Next::truncated, 0},
      {"*1", 0, Next::truncated, 0},
      {"*1\r\n$4\r\nPINGxx*1\r\n", 0, Next::malformed, 0},
      {"PING\r\n", 0, Next::malformed, 0},
      {"*0\r\n", 0, Next::malformed, 0},
      {"*-1\r\n", 0, Next::malformed, 0},
      {"*1\r\n$-1\r\n", 0, Next::malformed, 0},
      {"*1\r\n+OK\r\n", 0, Next::malformed, 0},
      {"*1\n$4\nPING\n", 0, Next::malformed, 0},
      {"*00000000000000000000000000000000001\r\n", 0, Next::malformed, 0},
      {"*1\r\n$9999999999999\r\n", 0, Next::malformed, 0},
  };
  for (const Row& row : table) {
    for (const std::size_t step : {1u, 3u, 1000u}) {
      std::string_view rest = row.text;
      LogReader reader = reader_of(rest, step);
      int requests = 0;
      Next end{};
      while ((end = reader.next()) == Next::request) ++requests;
      EXPECT_EQ(requests, row.requests) << row.text;
      EXPECT_EQ(end, row.end) << row.text;
      EXPECT_EQ(reader.whole_bytes(), row.whole) << row.text;
    }
  }
}

TEST(AofLogReader, reads_words_longer_than_its_buffer) {
  const std::string large(1 << 20, 'x');
  const std::string text = "*2\r\n$1\r\na\r\n$1048576\r\n" + large + "\r\n*1\r\n$1\r\nb\r\n";
  std::string_view rest = text;
  LogReader reader = reader_of(rest, 1000);
  ASSERT_EQ(reader.next(), LogReader::Next::request);
  EXPECT_EQ(reader.arguments()[0].text, "a");
  EXPECT_EQ(reader.arguments()[1].text, large);
  ASSERT_EQ(reader.next(), LogReader::Next::request);
  EXPECT_EQ(reader.arguments()[0].text, "b");
  EXPECT_EQ(reader.next(), LogReader::Next::end);
}

}  // namespace
}  // namespace weir::kv::aof
