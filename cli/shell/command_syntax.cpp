#include "cli/shell/command_syntax.hpp"

#include <cctype>

#include "cli/shell/quoting.hpp"

namespace weir::shell {
namespace {

constexpr CommandSyntax table[] = {
    {"ACL WHOAMI", ""},
    {"APPEND", "key value"},
    {"AUTH", "[username] password"},
    {"BITCOUNT", "key [start end [BYTE|BIT]]"},
    {"BLPOP", "key [key ...] timeout"},
    {"BRPOP", "key [key ...] timeout"},
    {"CLIENT GETNAME", ""},
    {"CLIENT ID", ""},
    {"CLIENT INFO", ""},
    {"CLIENT KILL", "[ID id] [ADDR ip:port] [TYPE type] [SKIPME yes|no]"},
    {"CLIENT LIST", "[TYPE type] [ID id [id ...]]"},
    {"CLIENT NO-EVICT", "ON|OFF"},
    {"CLIENT REPLY", "ON|OFF|SKIP"},
    {"CLIENT SETNAME", "name"},
    {"COMMAND COUNT", ""},
    {"COMMAND INFO", "[command ...]"},
    {"COMMAND LIST", ""},
    {"CONFIG GET", "pattern [pattern ...]"},
    {"CONFIG RESETSTAT", ""},
    {"CONFIG REWRITE", ""},
    {"CONFIG SET", "parameter value [parameter value ...]"},
    {"COPY", "source destination [DB db] [REPLACE]"},
    {"DBSIZE", ""},
    {"DECR", "key"},
    {"DECRBY", "key decrement"},
    {"DEL", "key [key ...]"},
    {"DISCARD", ""},
    {"DUMP", "key"},
    {"ECHO", "message"},
    {"EVAL", "script numkeys [key [key ...]] [arg [arg ...]]"},
    {"EXEC", ""},
    {"EXISTS", "key [key ...]"},
    {"EXPIRE", "key seconds [NX|XX|GT|LT]"},
    {"EXPIREAT", "key unix-time-seconds [NX|XX|GT|LT]"},
    {"EXPIRETIME", "key"},
    {"FLUSHALL", "[ASYNC|SYNC]"},
    {"FLUSHDB", "[ASYNC|SYNC]"},
    {"GEOADD", "key [NX|XX] [CH] longitude latitude member [longitude latitude member ...]"},
    {"GEODIST", "key member1 member2 [M|KM|FT|MI]"},
    {"GEOHASH", "key [member [member ...]]"},
    {"GEOPOS", "key [member [member ...]]"},
    {"GEOSEARCH",
     "key FROMMEMBER member|FROMLONLAT longitude latitude BYRADIUS radius M|KM|FT|MI|BYBOX width height "
     "M|KM|FT|MI [ASC|DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]"},
    {"GEOSEARCHSTORE",
     "destination source FROMMEMBER member|FROMLONLAT longitude latitude BYRADIUS radius M|KM|FT|MI|BYBOX "
     "width height M|KM|FT|MI [ASC|DESC] [COUNT count [ANY]] [STOREDIST]"},
    {"GET", "key"},
    {"GETBIT", "key offset"},
    {"GETDEL", "key"},
    {"GETEX", "key [EX seconds|PX milliseconds|EXAT unix-time|PXAT unix-time-ms|PERSIST]"},
    {"GETRANGE", "key start end"},
    {"GETSET", "key value"},
    {"HDEL", "key field [field ...]"},
    {"HELLO", "[protover [AUTH username password] [SETNAME name]]"},
    {"HEXISTS", "key field"},
    {"HEXPIRE", "key seconds [NX|XX|GT|LT] FIELDS numfields field [field ...]"},
    {"HEXPIREAT", "key unix-time-seconds [NX|XX|GT|LT] FIELDS numfields field [field ...]"},
    {"HEXPIRETIME", "key FIELDS numfields field [field ...]"},
    {"HGET", "key field"},
    {"HGETALL", "key"},
    {"HGETDEL", "key FIELDS numfields field [field ...]"},
    {"HGETEX",
     "key [EX seconds|PX milliseconds|EXAT unix-time|PXAT unix-time-ms|PERSIST] FIELDS numfields field "
     "[field ...]"},
    {"HINCRBY", "key field increment"},
    {"HINCRBYFLOAT", "key field increment"},
    {"HKEYS", "key"},
    {"HLEN", "key"},
    {"HMGET", "key field [field ...]"},
    {"HMSET", "key field value [field value ...]"},
    {"HPERSIST", "key FIELDS numfields field [field ...]"},
    {"HPEXPIRE", "key milliseconds [NX|XX|GT|LT] FIELDS numfields field [field ...]"},
    {"HPEXPIREAT", "key unix-time-milliseconds [NX|XX|GT|LT] FIELDS numfields field [field ...]"},
    {"HPEXPIRETIME", "key FIELDS numfields field [field ...]"},
    {"HPTTL", "key FIELDS numfields field [field ...]"},
    {"HRANDFIELD", "key [count [WITHVALUES]]"},
    {"HSCAN", "key cursor [MATCH pattern] [COUNT count]"},
    {"HSET", "key field value [field value ...]"},
    {"HSETEX",
     "key [FNX|FXX] [EX seconds|PX milliseconds|EXAT unix-time|PXAT unix-time-ms|KEEPTTL] FIELDS numfields "
     "field value [field value ...]"},
    {"HSETNX", "key field value"},
    {"HSTRLEN", "key field"},
    {"HTTL", "key FIELDS numfields field [field ...]"},
    {"HVALS", "key"},
    {"INCR", "key"},
    {"INCRBY", "key increment"},
    {"INCRBYFLOAT", "key increment"},
    {"INFO", "[section [section ...]]"},
    {"KEYS", "pattern"},
    {"LASTSAVE", ""},
    {"LINDEX", "key index"},
    {"LINSERT", "key BEFORE|AFTER pivot element"},
    {"LLEN", "key"},
    {"LMOVE", "source destination LEFT|RIGHT LEFT|RIGHT"},
    {"LMPOP", "numkeys key [key ...] LEFT|RIGHT [COUNT count]"},
    {"LPOP", "key [count]"},
    {"LPOS", "key element [RANK rank] [COUNT num-matches] [MAXLEN len]"},
    {"LPUSH", "key element [element ...]"},
    {"LPUSHX", "key element [element ...]"},
    {"LRANGE", "key start stop"},
    {"LREM", "key count element"},
    {"LSET", "key index element"},
    {"LTRIM", "key start stop"},
    {"MEMORY USAGE", "key [SAMPLES count]"},
    {"MGET", "key [key ...]"},
    {"MONITOR", ""},
    {"MOVE", "key db"},
    {"MSET", "key value [key value ...]"},
    {"MSETNX", "key value [key value ...]"},
    {"MULTI", ""},
    {"OBJECT ENCODING", "key"},
    {"OBJECT FREQ", "key"},
    {"OBJECT IDLETIME", "key"},
    {"OBJECT REFCOUNT", "key"},
    {"PERSIST", "key"},
    {"PEXPIRE", "key milliseconds [NX|XX|GT|LT]"},
    {"PEXPIREAT", "key unix-time-milliseconds [NX|XX|GT|LT]"},
    {"PEXPIRETIME", "key"},
    {"PFADD", "key [element [element ...]]"},
    {"PFCOUNT", "key [key ...]"},
    {"PFMERGE", "destkey [sourcekey [sourcekey ...]]"},
    {"PING", "[message]"},
    {"PSETEX", "key milliseconds value"},
    {"PSUBSCRIBE", "pattern [pattern ...]"},
    {"PTTL", "key"},
    {"PUBLISH", "channel message"},
    {"PUBSUB CHANNELS", "[pattern]"},
    {"PUBSUB NUMPAT", ""},
    {"PUBSUB NUMSUB", "[channel [channel ...]]"},
    {"PUNSUBSCRIBE", "[pattern [pattern ...]]"},
    {"QUIT", ""},
    {"RANDOMKEY", ""},
    {"RENAME", "key newkey"},
    {"RENAMENX", "key newkey"},
    {"RESET", ""},
    {"RPOP", "key [count]"},
    {"RPOPLPUSH", "source destination"},
    {"RPUSH", "key element [element ...]"},
    {"RPUSHX", "key element [element ...]"},
    {"SADD", "key member [member ...]"},
    {"SCAN", "cursor [MATCH pattern] [COUNT count] [TYPE type]"},
    {"SCARD", "key"},
    {"SDIFF", "key [key ...]"},
    {"SDIFFSTORE", "destination key [key ...]"},
    {"SELECT", "index"},
    {"SET", "key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time|PXAT unix-time-ms|KEEPTTL]"},
    {"SETBIT", "key offset value"},
    {"SETEX", "key seconds value"},
    {"SETNX", "key value"},
    {"SETRANGE", "key offset value"},
    {"SHUTDOWN", "[NOSAVE|SAVE]"},
    {"SINTER", "key [key ...]"},
    {"SINTERCARD", "numkeys key [key ...] [LIMIT limit]"},
    {"SINTERSTORE", "destination key [key ...]"},
    {"SISMEMBER", "key member"},
    {"SMEMBERS", "key"},
    {"SMISMEMBER", "key member [member ...]"},
    {"SMOVE", "source destination member"},
    {"SORT",
     "key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE destination]"},
    {"SPOP", "key [count]"},
    {"SRANDMEMBER", "key [count]"},
    {"SREM", "key member [member ...]"},
    {"SSCAN", "key cursor [MATCH pattern] [COUNT count]"},
    {"STRLEN", "key"},
    {"SUBSCRIBE", "channel [channel ...]"},
    {"SUNION", "key [key ...]"},
    {"SUNIONSTORE", "destination key [key ...]"},
    {"SWAPDB", "index1 index2"},
    {"TIME", ""},
    {"TOUCH", "key [key ...]"},
    {"TTL", "key"},
    {"TYPE", "key"},
    {"UNLINK", "key [key ...]"},
    {"UNSUBSCRIBE", "[channel [channel ...]]"},
    {"UNWATCH", ""},
    {"WATCH", "key [key ...]"},
    {"ZADD", "key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]"},
    {"ZCARD", "key"},
    {"ZCOUNT", "key min max"},
    {"ZDIFF", "numkeys key [key ...] [WITHSCORES]"},
    {"ZINCRBY", "key increment member"},
    {"ZINTER", "numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]"},
    {"ZINTERSTORE", "destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX]"},
    {"ZLEXCOUNT", "key min max"},
    {"ZMSCORE", "key member [member ...]"},
    {"ZPOPMAX", "key [count]"},
    {"ZPOPMIN", "key [count]"},
    {"ZRANDMEMBER", "key [count [WITHSCORES]]"},
    {"ZRANGE", "key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]"},
    {"ZRANGEBYLEX", "key min max [LIMIT offset count]"},
    {"ZRANGEBYSCORE", "key min max [WITHSCORES] [LIMIT offset count]"},
    {"ZRANK", "key member"},
    {"ZREM", "key member [member ...]"},
    {"ZREMRANGEBYRANK", "key start stop"},
    {"ZREMRANGEBYSCORE", "key min max"},
    {"ZREVRANGE", "key start stop [WITHSCORES]"},
    {"ZREVRANGEBYSCORE", "key max min [WITHSCORES] [LIMIT offset count]"},
    {"ZREVRANK", "key member"},
    {"ZSCAN", "key cursor [MATCH pattern] [COUNT count]"},
    {"ZSCORE", "key member"},
    {"ZUNION", "numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]"},
    {"ZUNIONSTORE", "destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX]"},
};

std::size_t words_in(std::string_view name) { return name.find(' ') == std::string_view::npos ? 1 : 2; }

// The arguments of a syntax line; brackets stay together: "[EX seconds]" is one argument.
std::vector<std::string_view> arguments_in(std::string_view syntax) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= syntax.size(); ++i) {
    if (i < syntax.size() && syntax[i] == '[') ++depth;
    if (i < syntax.size() && syntax[i] == ']') --depth;
    if (i < syntax.size() && (syntax[i] != ' ' || depth > 0)) continue;
    if (i > start) parts.push_back(syntax.substr(start, i - start));
    start = i + 1;
  }
  return parts;
}

}  // namespace

const CommandSyntax* syntax_of(const std::vector<std::string>& words) {
  for (const auto& entry : table) {
    const auto count = words_in(entry.name);
    if (words.size() < count) continue;
    if (same_word(entry.name, count == 1 ? words[0] : words[0] + " " + words[1])) return &entry;
  }
  return nullptr;
}

std::string hint_for(std::string_view line) {
  const auto words = split_words(line);
  if (!words || words->empty()) return {};
  const auto* const syntax = syntax_of(*words);
  if (!syntax) return {};
  // The name of the word being typed stays visible.
  const bool typing = !line.empty() && !std::isspace(static_cast<unsigned char>(line.back()));
  auto given = words->size() - words_in(syntax->name);
  if (typing && given > 0) --given;
  std::string hint;
  const auto arguments = arguments_in(syntax->arguments);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool optional = arguments[i].starts_with('[');
    if (i < given && !optional) continue;
    hint.append(hint.empty() ? "" : " ").append(arguments[i]);
  }
  return hint;
}

std::vector<std::string> completions_of(std::string_view start) {
  std::vector<std::string> names;
  for (const auto& entry : table)
    if (entry.name.size() >= start.size() && same_word(entry.name.substr(0, start.size()), start))
      names.emplace_back(entry.name);
  return names;
}

std::string help_on(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& entry : table)
    if (!words.empty() &&
        (syntax_of(words) == &entry ||
         (words.size() == 1 && entry.name.size() > words[0].size() && entry.name[words[0].size()] == ' ' &&
          same_word(entry.name.substr(0, words[0].size()), words[0]))))
      text.append("  ").append(entry.name).append(" ").append(entry.arguments).append("\n");
  if (!text.empty()) return text;
  return "  help <command>     its arguments\n"
         "  <tab>              completes commands; their arguments are shown while you type\n"
         "  <n> <command>      runs it n times\n"
         "  connect <host> <port>, clear, quit\n";
}

}  // namespace weir::shell
