#include "kv/command/usual_event.hpp"

#include <algorithm>
#include <array>

#include "kv/command/command.hpp"

namespace weir::kv {

namespace {

struct EventRow {
  std::string_view command;
  KeyEvent event;
};

// Sorted by the commands' names.
constexpr std::array event_rows{
    EventRow{"append", {'$', "append"}},
    EventRow{"bitfield", {'$', "setbit"}},
    EventRow{"bitop", {'$', "set"}},
    EventRow{"blpop", {'l', "lpop"}},
    EventRow{"brpop", {'l', "rpop"}},
    EventRow{"bzpopmax", {'z', "zpopmax"}},
    EventRow{"bzpopmin", {'z', "zpopmin"}},
    EventRow{"copy", {'g', "copy_to"}},
    EventRow{"decr", {'$', "incrby"}},
    EventRow{"decrby", {'$', "incrby"}},
    EventRow{"expire", expiry_set},
    EventRow{"expireat", expiry_set},
    EventRow{"geoadd", {'z', "zadd"}},
    EventRow{"georadius", {'z', "georadiusstore"}},
    EventRow{"georadiusbymember", {'z', "georadiusstore"}},
    EventRow{"geosearchstore", {'z', "geosearchstore"}},
    EventRow{"getset", {'$', "set"}},
    EventRow{"hdel", {'h', "hdel"}},
    EventRow{"hincrby", {'h', "hincrby"}},
    EventRow{"hincrbyfloat", {'h', "hincrbyfloat"}},
    EventRow{"hmset", {'h', "hset"}},
    EventRow{"hset", {'h', "hset"}},
    EventRow{"hsetnx", {'h', "hset"}},
    EventRow{"incr", {'$', "incrby"}},
    EventRow{"incrby", {'$', "incrby"}},
    EventRow{"incrbyfloat", {'$', "incrbyfloat"}},
    EventRow{"linsert", {'l', "linsert"}},
    EventRow{"lpop", {'l', "lpop"}},
    EventRow{"lpush", {'l', "lpush"}},
    EventRow{"lpushx", {'l', "lpush"}},
    EventRow{"lrem", {'l', "lrem"}},
    EventRow{"lset", {'l', "lset"}},
    EventRow{"ltrim", {'l', "ltrim"}},
    EventRow{"mset", {'$', "set"}},
    EventRow{"msetex", {'$', "set"}},
    EventRow{"msetnx", {'$', "set"}},
    EventRow{"persist", expiry_removed},
    EventRow{"pexpire", expiry_set},
    EventRow{"pexpireat", expiry_set},
    EventRow{"pfadd", {'$', "pfadd"}},
    EventRow{"pfmerge", {'$', "pfadd"}},
    EventRow{"psetex", {'$', "set"}},
    EventRow{"restore", {'g', "restore"}},
    EventRow{"restore-asking", {'g', "restore"}},
    EventRow{"rpop", {'l', "rpop"}},
    EventRow{"rpush", {'l', "rpush"}},
    EventRow{"rpushx", {'l', "rpush"}},
    EventRow{"sadd", {'s', "sadd"}},
    EventRow{"sdiffstore", {'s', "sdiffstore"}},
    EventRow{"set", {'$', "set"}},
    EventRow{"setbit", {'$', "setbit"}},
    EventRow{"setex", {'$', "set"}},
    EventRow{"setnx", {'$', "set"}},
    EventRow{"setrange", {'$', "setrange"}},
    EventRow{"sinterstore", {'s', "sinterstore"}},
    EventRow{"sort", {'l', "sortstore"}},
    EventRow{"spop", {'s', "spop"}},
    EventRow{"srem", {'s', "srem"}},
    EventRow{"sunionstore", {'s', "sunionstore"}},
    EventRow{"xadd", {'t', "xadd"}},
    EventRow{"xdel", {'t', "xdel"}},
    EventRow{"xsetid", {'t', "xsetid"}},
    EventRow{"xtrim", {'t', "xtrim"}},
    EventRow{"zadd", {'z', "zadd"}},
    EventRow{"zdiffstore", {'z', "zdiffstore"}},
    EventRow{"zincrby", {'z', "zincr"}},
    EventRow{"zinterstore", {'z', "zinterstore"}},
    EventRow{"zpopmax", {'z', "zpopmax"}},
    EventRow{"zpopmin", {'z', "zpopmin"}},
    EventRow{"zrangestore", {'z', "zrangestore"}},
    EventRow{"zrem", {'z', "zrem"}},
    EventRow{"zremrangebylex", {'z', "zremrangebylex"}},
    EventRow{"zremrangebyrank", {'z', "zremrangebyrank"}},
    EventRow{"zremrangebyscore", {'z', "zremrangebyscore"}},
    EventRow{"zunionstore", {'z', "zunionstore"}},
};
static_assert(std::ranges::is_sorted(event_rows, {}, &EventRow::command));

// For XGROUP's subcommands.
constexpr std::array group_rows{
    EventRow{"create", {'t', "xgroup-create"}},
    EventRow{"createconsumer", {'t', "xgroup-createconsumer"}},
    EventRow{"delconsumer", {'t', "xgroup-delconsumer"}},
    EventRow{"destroy", {'t', "xgroup-destroy"}},
    EventRow{"setid", {'t', "xgroup-setid"}},
};
static_assert(std::ranges::is_sorted(group_rows, {}, &EventRow::command));

KeyEvent event_in(std::span<const EventRow> rows, std::string_view name) {
  const auto row = std::ranges::lower_bound(rows, name, {}, &EventRow::command);
  return row == rows.end() || row->command != name ? KeyEvent{} : row->event;
}

}  // namespace

KeyEvent usual_event(const Command& command) {
  if (command.container == "xgroup") return event_in(group_rows, command.name);
  return command.container.empty() ? event_in(event_rows, command.name) : KeyEvent{};
}

}  // namespace weir::kv
