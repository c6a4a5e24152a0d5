// When a client pings its server, and when it gives up on it: at given times.
#include "rpc/client/server_watch.hpp"

#include <gmock/gmock.h>

namespace weir::rpc {
namespace {

using std::chrono::seconds;
using Next = ServerWatch::Next;
using enum ServerWatch::Next;

// A look at a time, with what had come and gone by then.
struct Look {
  int second;
  PeerProgress progress;
  Next next;
};

struct Row {
  std::string_view what;
  std::vector<Look> looks;
};

TEST(ServerWatch, pings_a_silent_server_and_gives_up_within_the_limit) {
  const Row rows[] = {
      {"silent from the beginning", {{10, {}, ping}, {20, {}, gone}}},
      {"silent after it had sent something",
       {{10, {.bytes_received = 1}, wait},
        {20, {.bytes_received = 1}, ping},
        {30, {.bytes_received = 1}, gone}}},
      {"answers each ping",
       {{10, {}, ping},
        {20, {.bytes_received = 40}, wait},
        {30, {.bytes_received = 40}, ping},
        {40, {.bytes_received = 80}, wait}}},
      {"sends by itself", {{10, {.bytes_received = 1}, wait}, {20, {.bytes_received = 2}, wait}}},
      {"takes what waits for it",
       {{10, {.bytes_sent = 1, .bytes_waiting = 9}, ping},
        {20, {.bytes_sent = 5, .bytes_waiting = 5}, wait},
        {30, {.bytes_sent = 10}, wait},
        {40, {.bytes_sent = 10}, gone}}},
      {"takes nothing of what waits for it",
       {{10, {.bytes_sent = 1, .bytes_waiting = 9}, ping},
        {20, {.bytes_sent = 1, .bytes_waiting = 9}, gone}}},
      {"this end was held up", {{10, {}, ping}, {60, {}, wait}, {70, {}, ping}, {80, {}, gone}}},
  };
  for (const auto& [what, looks] : rows) {
    SCOPED_TRACE(what);
    ServerWatch watch(seconds(30), {});
    EXPECT_EQ(watch.period(), seconds(10));
    for (const Look& one : looks)
      EXPECT_EQ(watch.look(ServerWatch::TimePoint(seconds(one.second)), one.progress), one.next)
          << one.second;
  }
}

}  // namespace
}  // namespace weir::rpc
