// What every write command tells of its effect: replayed into a second server the words make equal data.
#include <algorithm>
#include <random>
#include <set>

#include "kv/glob.hpp"
#include "kv/resp/words.hpp"
#include "tests/kv/recorded_effects.hpp"

namespace weir::kv::testing {
namespace {

struct Row {
  std::string_view name;    // of the command, as the registry has it
  std::string_view before;  // commands that make the data it acts on, "; " between them
  std::string_view command;
  std::string_view told;  // a pattern for each request, "; " between them; empty: nothing is told
};

// A command that has flag::write and no row here fails the test below.
constexpr Row rows[] = {
    // Strings.
    {"set", "", "SET k v", "SET k v"},
    {"set", "", "SET k v EX 100", "SET k v PXAT *"},
    {"set", "", "SET k v PX 100000", "SET k v PXAT *"},
    {"set", "", "SET k v EXAT 4000000000", "SET k v PXAT 4000000000000"},
    {"set", "SET k w EX 100", "SET k v KEEPTTL", "SET k v KEEPTTL"},
    {"set", "SET k w EX 100", "SET k v GET", "SET k v GET"},
    {"set", "SET k w", "SET k v NX", ""},
    {"set", "", "SET k v XX", ""},
    {"setnx", "", "SETNX k v", "SETNX k v"},
    {"setnx", "SET k w", "SETNX k v", ""},
    {"setex", "", "SETEX k 100 v", "SET k v PXAT *"},
    {"psetex", "", "PSETEX k 100000 v", "SET k v PXAT *"},
    {"getdel", "SET k v", "GETDEL k", "DEL k"},
    {"getdel", "", "GETDEL k", ""},
    {"getex", "SET k v", "GETEX k", ""},
    {"getex", "SET k v", "GETEX k EX 100", "PEXPIREAT k *"},
    {"getex", "SET k v", "GETEX k PXAT 1", "DEL k"},
    {"getex", "SET k v EX 100", "GETEX k PERSIST", "PERSIST k"},
    {"getex", "SET k v", "GETEX k PERSIST", ""},
    {"getset", "SET k w EX 100", "GETSET k v", "SET k v"},
    {"mset", "SET a 1 EX 100", "MSET a 2 b 3", "MSET a 2 b 3"},
    {"msetnx", "", "MSETNX a 2 b 3", "MSETNX a 2 b 3"},
    {"msetnx", "SET a 1", "MSETNX a 2 b 3", ""},
    {"append", "SET k v EX 100", "APPEND k w", "APPEND k w"},
    {"setrange", "SET k 12345", "SETRANGE k 2 ab", "SETRANGE k 2 ab"},
    {"setrange", "", "SETRANGE k 2 ''", ""},
    {"incr", "SET k 7 EX 100", "INCR k", "INCR k"},
    {"incr", "SET k v", "INCR k", ""},
    {"decr", "", "DECR k", "DECR k"},
    {"incrby", "", "INCRBY k 5", "INCRBY k 5"},
    {"decrby", "", "DECRBY k 5", "DECRBY k 5"},
    {"incrbyfloat", "SET k 0.1 EX 100", "INCRBYFLOAT k 0.2", "SET k 0.3 KEEPTTL"},
    {"setbit", "SET k a", "SETBIT k 70 1", "SETBIT k 70 1"},
    {"setbit", "SET k a", "SETBIT k 0 0", ""},
    {"bitop", "MSET a abc b xy", "BITOP XOR k a b", "BITOP XOR k a b"},
    {"bitop", "SET k v", "BITOP NOT k none", "BITOP NOT k none"},
    {"bitfield", "SET k abc", "BITFIELD k GET u8 0 INCRBY u5 20 7", "BITFIELD k GET u8 0 INCRBY u5 20 7"},
    {"bitfield", "SET k abc", "BITFIELD k GET u8 0", ""},
    // Expiry.
    {"expire", "SET k v", "EXPIRE k 100", "PEXPIREAT k *"},
    {"expire", "SET k v", "EXPIRE k -1", "DEL k"},
    {"expire", "SET k v EX 100", "EXPIRE k 200 NX", ""},
    {"expire", "", "EXPIRE k 100", ""},
    {"pexpire", "SET k v EX 100", "PEXPIRE k 200000 GT", "PEXPIREAT k *"},
    {"expireat", "SET k v", "EXPIREAT k 4000000000", "PEXPIREAT k 4000000000000"},
    {"pexpireat", "SET k v", "PEXPIREAT k 4000000000001", "PEXPIREAT k 4000000000001"},
    {"persist", "SET k v EX 100", "PERSIST k", "PERSIST k"},
    {"persist", "SET k v", "PERSIST k", ""},
    // Keys.
    {"del", "MSET a 1 b 2", "DEL a b c", "DEL a b c"},
    {"del", "", "DEL a", ""},
    {"unlink", "SET a 1", "UNLINK a", "UNLINK a"},
    {"rename", "SET a 1 EX 100; RPUSH b x", "RENAME a b", "RENAME a b"},
    {"rename", "SET a 1", "RENAME a a", ""},
    {"renamenx", "SET a 1", "RENAMENX a b", "RENAMENX a b"},
    {"renamenx", "MSET a 1 b 2", "RENAMENX a b", ""},
    {"copy", "RPUSH a x y; EXPIRE a 100", "COPY a b DB 3", "COPY a b DB 3"},
    {"copy", "SET a x; SET b y", "COPY a b", ""},
    {"move", "SET a 1 EX 100", "MOVE a 2", "MOVE a 2"},
    {"swapdb", "SET a 1", "SWAPDB 0 5", "SWAPDB 0 5"},
    {"swapdb", "SET a 1", "SWAPDB 0 0", ""},
    {"flushdb", "SET a 1", "FLUSHDB", "FLUSHDB"},
    {"flushall", "SET a 1; COPY a a DB 4", "FLUSHALL ASYNC", "FLUSHALL ASYNC"},
    {"sort", "RPUSH l 3 1 2", "SORT l STORE d", "SORT l STORE d"},
    {"sort", "SADD s x y z; MSET w_x 1 w_y 1 w_z 0", "SORT s BY w_* ALPHA LIMIT 0 2 STORE d", "SORT s *"},
    {"sort", "RPUSH d x", "SORT none STORE d", "SORT none STORE d"},
    {"sort", "RPUSH l 3 1 2", "SORT l", ""},
    // Hashes.
    {"hset", "", "HSET h a 1 b 2", "HSET h a 1 b 2"},
    {"hmset", "", "HMSET h a 1", "HMSET h a 1"},
    {"hsetnx", "HSET h a 1", "HSETNX h b 2", "HSETNX h b 2"},
    {"hsetnx", "HSET h a 1", "HSETNX h a 2", ""},
    {"hdel", "HSET h a 1", "HDEL h a b", "HDEL h a b"},
    {"hdel", "HSET h a 1", "HDEL h b", ""},
    {"hincrby", "HSET h a 1", "HINCRBY h a 5", "HINCRBY h a 5"},
    {"hincrbyfloat", "HSET h a 0.1", "HINCRBYFLOAT h a 0.2", "HSET h a 0.3"},
    // Lists.
    {"lpush", "", "LPUSH l a b", "LPUSH l a b"},
    {"rpush", "", "RPUSH l a b", "RPUSH l a b"},
    {"lpushx", "RPUSH l a", "LPUSHX l b", "LPUSHX l b"},
    {"lpushx", "", "LPUSHX l b", ""},
    {"rpushx", "RPUSH l a", "RPUSHX l b", "RPUSHX l b"},
    {"lpop", "RPUSH l a b c", "LPOP l 2", "LPOP l 2"},
    {"lpop", "RPUSH l a b c", "LPOP l 0", ""},
    {"rpop", "RPUSH l a", "RPOP l", "RPOP l"},
    {"lset", "RPUSH l a b", "LSET l -1 c", "LSET l -1 c"},
    {"ltrim", "RPUSH l a b c d", "LTRIM l 1 2", "LTRIM l 1 2"},
    {"ltrim", "RPUSH l a", "LTRIM l 5 6", "LTRIM l 5 6"},
    {"lrem", "RPUSH l a b a", "LREM l -1 a", "LREM l -1 a"},
    {"lrem", "RPUSH l a", "LREM l 0 x", ""},
    {"linsert", "RPUSH l a b", "LINSERT l AFTER a x", "LINSERT l AFTER a x"},
    {"linsert", "RPUSH l a b", "LINSERT l AFTER c x", ""},
    {"lmove", "RPUSH l a b; RPUSH m c", "LMOVE l m RIGHT LEFT", "LMOVE l m RIGHT LEFT"},
    {"lmove", "RPUSH l a b; SET m c", "LMOVE l m RIGHT LEFT", ""},
    {"rpoplpush", "RPUSH l a b", "RPOPLPUSH l l", "RPOPLPUSH l l"},
    {"lmpop", "RPUSH m a b c", "LMPOP 2 l m RIGHT COUNT 2", "RPOP m 2"},
    {"lmpop", "", "LMPOP 2 l m RIGHT", ""},
    {"blpop", "RPUSH m a b", "BLPOP l m 0", "LPOP m"},
    {"brpop", "RPUSH m a", "BRPOP l m 0", "RPOP m"},
    {"blmove", "RPUSH l a b", "BLMOVE l m LEFT RIGHT 0", "LMOVE l m LEFT RIGHT"},
    {"blmove", "RPUSH l a b; SET m c", "BLMOVE l m LEFT RIGHT 0", ""},
    {"brpoplpush", "RPUSH l a b", "BRPOPLPUSH l m 0", "LMOVE l m RIGHT LEFT"},
    {"blmpop", "RPUSH m a b", "BLMPOP 0 2 l m LEFT COUNT 5", "LPOP m 2"},
    // Sets.
    {"sadd", "SADD s a", "SADD s a b", "SADD s a b"},
    {"sadd", "SADD s a", "SADD s a", ""},
    {"srem", "SADD s a b", "SREM s a c", "SREM s a c"},
    {"srem", "SADD s a b", "SREM s c", ""},
    {"smove", "SADD s a b; SADD t c", "SMOVE s t a", "SMOVE s t a"},
    {"smove", "SADD s a b; SADD t a", "SMOVE s t a", "SMOVE s t a"},
    {"smove", "SADD s a b", "SMOVE s t c", ""},
    {"spop", "SADD s a b c d e f", "SPOP s", "SREM s ?"},
    {"spop", "SADD s 1 2 3 4 5 6", "SPOP s 3", "SREM s ? ? ?"},
    {"spop", "SADD s a b", "SPOP s 3", "DEL s"},
    {"spop", "SADD s a b", "SPOP s 0", ""},
    {"sinterstore", "SADD s a b; SADD t b c; SET d v EX 100", "SINTERSTORE d s t", "SINTERSTORE d s t"},
    {"sinterstore", "SADD s a; SADD t b", "SINTERSTORE d s t", ""},
    {"sunionstore", "SADD s a b; SADD t b c", "SUNIONSTORE d s t", "SUNIONSTORE d s t"},
    {"sdiffstore", "SADD s a b; SADD t b c", "SDIFFSTORE d s t", "SDIFFSTORE d s t"},
    // Sorted sets.
    {"zadd", "ZADD z 1 a", "ZADD z GT CH 2 a 0.1 b", "ZADD z GT CH 2 a 0.1 b"},
    {"zadd", "ZADD z 1 a", "ZADD z 1 a", ""},
    {"zadd", "ZADD z 0.1 a", "ZADD z INCR 0.2 a", "ZADD z INCR 0.2 a"},
    {"zincrby", "ZADD z 0.1 a", "ZINCRBY z 0.2 a", "ZINCRBY z 0.2 a"},
    {"zrem", "ZADD z 1 a 2 b", "ZREM z a c", "ZREM z a c"},
    {"zrangestore", "ZADD z 1 a 2 b 3 c", "ZRANGESTORE d z 1 2", "ZRANGESTORE d z 1 2"},
    {"zremrangebyrank", "ZADD z 1 a 2 b 3 c", "ZREMRANGEBYRANK z 0 1", "ZREMRANGEBYRANK z 0 1"},
    {"zremrangebyscore", "ZADD z 1 a 2 b 3 c", "ZREMRANGEBYSCORE z (1 +inf", "ZREMRANGEBYSCORE z (1 +inf"},
    {"zremrangebylex", "ZADD z 0 a 0 b 0 c", "ZREMRANGEBYLEX z - [b", "ZREMRANGEBYLEX z - \\[b"},
    {"zremrangebylex", "ZADD z 0 a 0 b", "ZREMRANGEBYLEX z [x [y", ""},
    {"zunionstore", "ZADD z 1 a 2 b; SADD s b c", "ZUNIONSTORE d 2 z s WEIGHTS 0.1 0.7",
     "ZUNIONSTORE d 2 z s *"},
    {"zinterstore", "ZADD z 1 a 2 b; SADD s b c", "ZINTERSTORE d 2 z s", "ZINTERSTORE d 2 z s"},
    {"zdiffstore", "ZADD z 1 a 2 b; SADD s b c", "ZDIFFSTORE d 2 z s", "ZDIFFSTORE d 2 z s"},
    {"zpopmin", "ZADD z 1 a 2 b", "ZPOPMIN z", "ZPOPMIN z"},
    {"zpopmax", "ZADD z 1 a 2 b", "ZPOPMAX z 5", "ZPOPMAX z 5"},
    {"bzpopmin", "ZADD z 1 a 2 b", "BZPOPMIN y z 0", "ZPOPMIN z"},
    {"bzpopmax", "ZADD z 1 a 2 b", "BZPOPMAX y z 0", "ZPOPMAX z"},
    {"zmpop", "ZADD z 1 a 2 b 3 c", "ZMPOP 2 y z MAX COUNT 2", "ZPOPMAX z 2"},
    {"bzmpop", "ZADD z 1 a 2 b 3 c", "BZMPOP 0 2 y z MIN COUNT 2", "ZPOPMIN z 2"},
    // Places.
    {"geoadd", "", "GEOADD g 1 2 a 3 4 b", "GEOADD g 1 2 a 3 4 b"},
    {"geoadd", "GEOADD g 1 2 a", "GEOADD g 1 2 a", ""},
    {"georadius", "GEOADD g 1 2 a 3 4 b", "GEORADIUS g 1 2 1 km STORE d", "GEORADIUS g 1 2 1 km STORE d"},
    {"georadius", "GEOADD g 1 2 a", "GEORADIUS g 1 2 1 km", ""},
    {"georadiusbymember", "GEOADD g 1 2 a; SET d x", "GEORADIUSBYMEMBER g a 1 km STOREDIST d",
     "GEORADIUSBYMEMBER g a 1 km STOREDIST d"},
    {"geosearchstore", "GEOADD g 1 2 a 3 4 b", "GEOSEARCHSTORE d g FROMLONLAT 1 2 BYBOX 1 1 km",
     "GEOSEARCHSTORE d g FROMLONLAT 1 2 BYBOX 1 1 km"},
    {"geosearchstore", "GEOADD d 1 2 a", "GEOSEARCHSTORE d g FROMLONLAT 1 2 BYBOX 1 1 km",
     "GEOSEARCHSTORE d g FROMLONLAT 1 2 BYBOX 1 1 km"},
    // HyperLogLog.
    {"pfadd", "", "PFADD h a b", "PFADD h a b"},
    {"pfadd", "", "PFADD h", "PFADD h"},
    {"pfadd", "PFADD h a b", "PFADD h a", ""},
    {"pfmerge", "PFADD h a; PFADD i b", "PFMERGE j h i", "PFMERGE j h i"},
    {"pfcount", "PFADD h a", "PFCOUNT h", "PFCOUNT h"},
    {"pfcount", "PFADD h a; PFCOUNT h", "PFCOUNT h", ""},
    {"pfdebug", "PFADD h a", "PFDEBUG TODENSE h", "PFDEBUG TODENSE h"},
    {"pfdebug", "PFADD h a", "PFDEBUG ENCODING h", ""},
    // Streams.
    {"xadd", "", "XADD s 5-1 a 1", "XADD s 5-1 a 1"},
    {"xadd", "", "XADD s * a 1 b 2", "XADD s *-* a 1 b 2"},
    {"xadd", "XADD s 5-7 a 1", "XADD s NOMKSTREAM 5-* a 1", "XADD s 5-8 a 1"},
    {"xadd", "XADD s 1-1 a 1; XADD s 2-1 a 1", "XADD s MAXLEN 1 * a 1", "XADD s MAXLEN = 1 *-* a 1"},
    {"xadd", "XADD s 1-1 a 1; XADD s 2-1 a 1", "XADD s MINID = 2 3-* a 1", "XADD s MINID = 2-0 3-0 a 1"},
    {"xadd", "XADD s 1-1 a 1", "XADD s MAXLEN ~ 1 9-1 a 1", "XADD s MAXLEN = 2 9-1 a 1"},
    {"xadd", "XADD s 5-7 a 1", "XADD s 5-6 a 1", ""},
    {"xdel", "XADD s 1-1 a 1; XADD s 2-1 a 1", "XDEL s 1-1 3-1", "XDEL s 1-1 3-1"},
    {"xdel", "XADD s 1-1 a 1", "XDEL s 3-1", ""},
    {"xtrim", "XADD s 1-1 a 1; XADD s 2-1 a 1", "XTRIM s MAXLEN 1", "XTRIM s MAXLEN 1"},
    {"xtrim", "XADD s 1-1 a 1; XADD s 2-1 a 1", "XTRIM s MINID ~ 5", "XTRIM s MAXLEN = 0"},
    {"xtrim", "XADD s 1-1 a 1; XADD s 2-1 a 1", "XTRIM s MAXLEN ~ 1", ""},
    {"xsetid", "XADD s 1-1 a 1", "XSETID s 9-9", "XSETID s 9-9"},
    {"xgroup|create", "", "XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE s g $ MKSTREAM"},
    {"xgroup|create", "XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE s g 0", ""},
    {"xgroup|setid", "XGROUP CREATE s g $ MKSTREAM", "XGROUP SETID s g 5", "XGROUP SETID s g 5"},
    {"xgroup|destroy", "XGROUP CREATE s g $ MKSTREAM", "XGROUP DESTROY s g", "XGROUP DESTROY s g"},
    {"xgroup|destroy", "XGROUP CREATE s g $ MKSTREAM", "XGROUP DESTROY s h", ""},
    {"xgroup|createconsumer", "XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATECONSUMER s g c",
     "XGROUP CREATECONSUMER s g c"},
    {"xgroup|delconsumer", "XGROUP CREATE s g $ MKSTREAM; XGROUP CREATECONSUMER s g c",
     "XGROUP DELCONSUMER s g c", "XGROUP DELCONSUMER s g c"},
    {"xgroup|delconsumer", "XGROUP CREATE s g $ MKSTREAM", "XGROUP DELCONSUMER s g c", ""},
    {"xreadgroup", "XADD s 1-1 a 1; XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >",
     "MULTI; XGROUP CREATECONSUMER s g c; XCLAIM s g c 0 1-1 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 1-1; "
     "XGROUP SETID s g 1-1 ENTRIESREAD 1; EXEC"},
    {"xreadgroup", "XADD s 1-1 a 1; XGROUP CREATE s g 0; XGROUP CREATECONSUMER s g c",
     "XREADGROUP GROUP g c NOACK STREAMS s >", "XGROUP SETID s g 1-1 ENTRIESREAD 1"},
    {"xreadgroup", "XADD s 1-1 a 1; XGROUP CREATE s g 0; XREADGROUP GROUP g c STREAMS s >",
     "XREADGROUP GROUP g c STREAMS s 0", "XCLAIM s g c 0 1-1 TIME * RETRYCOUNT 2 FORCE JUSTID LASTID 1-1"},
    {"xreadgroup", "XADD s 1-1 a 1; XGROUP CREATE s g $; XGROUP CREATECONSUMER s g c",
     "XREADGROUP GROUP g c STREAMS s >", ""},
    {"xack", "XADD s 1-1 a 1; XGROUP CREATE s g 0; XREADGROUP GROUP g c STREAMS s >", "XACK s g 1-1 2-1",
     "XACK s g 1-1 2-1"},
    {"xack", "XGROUP CREATE s g $ MKSTREAM", "XACK s g 1-1", ""},
    {"xclaim",
     "XADD s 1-1 a 1; XADD s 2-1 a 1; XGROUP CREATE s g 0; XREADGROUP GROUP g c STREAMS s >; XDEL s 2-1",
     "XCLAIM s g d 0 1-1 2-1 LASTID 1-0",
     "MULTI; XCLAIM s g d 0 1-1 TIME * RETRYCOUNT 2 FORCE JUSTID LASTID 2-1; XACK s g 2-1; EXEC"},
    {"xclaim", "XADD s 1-1 a 1; XGROUP CREATE s g 0", "XCLAIM s g d 0 7-1 LASTID 1-1",
     "XGROUP SETID s g 1-1 ENTRIESREAD -1"},
    {"xclaim", "XADD s 1-1 a 1; XGROUP CREATE s g 0", "XCLAIM s g d 0 1-1", ""},
    {"xautoclaim", "XADD s 1-1 a 1; XGROUP CREATE s g 0; XREADGROUP GROUP g c STREAMS s >",
     "XAUTOCLAIM s g d 0 - JUSTID", "XCLAIM s g d 0 1-1 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 1-1"},
    {"xautoclaim", "XADD s 1-1 a 1; XGROUP CREATE s g 0; XREADGROUP GROUP g c STREAMS s >; XDEL s 1-1",
     "XAUTOCLAIM s g d 0 -", "XACK s g 1-1"},
    // Scripts tell what their commands did, functions are data.
    {"eval", "", "EVAL \"redis.call('set','a',1) redis.call('get','a') return redis.call('expire','a',9)\" 0",
     "MULTI; set a 1; PEXPIREAT a *; EXEC"},
    {"eval", "", "EVAL \"return redis.call('select',3) and redis.call('set','a',1)\" 0", "set a 1"},
    {"eval", "SET a 1", "EVAL \"return redis.call('get','a')\" 0", ""},
    // Dumped values.
    {"restore", "", "RESTORE k 0 \"\\x00\\x01\\x76\\x0a\\x00\\x91\\x08\\xce\\xb2\\x19\\x38\\x8a\\xce\"",
     "RESTORE k 0 *"},
    {"restore", "SET k w",
     "RESTORE k 100000 \"\\x00\\x01\\x76\\x0a\\x00\\x91\\x08\\xce\\xb2\\x19\\x38\\x8a\\xce\" REPLACE",
     "RESTORE k * ABSTTL REPLACE"},
    {"restore", "SET k w",
     "RESTORE k 1 \"\\x00\\x01\\x76\\x0a\\x00\\x91\\x08\\xce\\xb2\\x19\\x38\\x8a\\xce\" ABSTTL REPLACE",
     "RESTORE k 1 * ABSTTL REPLACE"},
    {"restore", "SET k w",
     "RESTORE k 0 \"\\x00\\x01\\x76\\x0a\\x00\\x91\\x08\\xce\\xb2\\x19\\x38\\x8a\\xce\"", ""},
    {"restore-asking", "",
     "RESTORE-ASKING k 0 \"\\x00\\x01\\x76\\x0a\\x00\\x91\\x08\\xce\\xb2\\x19\\x38\\x8a\\xce\"",
     "RESTORE-ASKING k 0 *"},
    {"function|restore", "",
     "FUNCTION RESTORE "
     "\"\\xf5\\x3b\\x23\\x21\\x6c\\x75\\x61\\x20\\x6e\\x61\\x6d\\x65\\x3d\\x6c\\x69\\x62\\x0a\\x72\\x65\\x64"
     "\\x69\\x73\\x2e\\x72\\x65\\x67\\x69\\x73\\x74\\x65\\x72\\x5f\\x66\\x75\\x6e\\x63\\x74\\x69\\x6f\\x6e\\x"
     "28\\x27\\x66\\x27\\x2c\\x20\\x66\\x75\\x6e\\x63\\x74\\x69\\x6f\\x6e\\x28\\x29\\x20\\x65\\x6e\\x64\\x29"
     "\\x0a\\x00\\x43\\xcb\\x68\\xb4\\xa7\\x0f\\x4c\\xa5\"",
     "FUNCTION RESTORE *"},
    {"function|load", "", "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function() end)\"",
     "FUNCTION LOAD #!lua name=lib*"},
    {"function|delete", "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function() end)\"",
     "FUNCTION DELETE lib", "FUNCTION DELETE lib"},
    {"function|flush", "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function() end)\"",
     "FUNCTION FLUSH", "FUNCTION FLUSH"},
    {"function|flush", "", "FUNCTION FLUSH", ""},
    {"fcall",
     "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function(k) return redis.call('incr', "
     "k[1]) end)\"",
     "FCALL f 1 n", "incr n"},
};

std::vector<std::string> split_at_semicolons(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find("; ");
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return parts;
}

std::string joined(const std::vector<RecordedEffects::Told>& told) {
  std::string text;
  for (const auto& [db, request] : told) text.append(text.empty() ? "" : "; ").append(words_of(request));
  return text;
}

// A server whose effects are replayed into a second one.
class Replayed {
 public:
  std::string call(std::string_view line) { return client_.call(*split_words(line)); }
  // Replays what happened since the last call; returns it.
  std::vector<RecordedEffects::Told> pass_on() {
    auto told = effects_.take();
    replay(copys_client_, told);
    return told;
  }
  void expect_equal_data() { EXPECT_EQ(state_of(copy), state_of(original)); }

  // Its clock stands far behind: nothing expires there unless it is told.
  RunningServer copy;
  RunningServer original;

 private:
  WireClient client_ = original.connect();
  WireClient copys_client_ = copy.connect();
  RecordedEffects effects_{original};
};

TEST(Effects, every_write_command_has_a_row) {
  std::set<std::string> written;
  for (const Row& row : rows) {
    written.emplace(row.name);
    EXPECT_NE(find_full_name(row.name), nullptr) << row.name;
  }
  const auto expect_row = [&](const Command& command) {
    if (command.has(flag::write)) {
      EXPECT_TRUE(written.contains(command.full_name())) << command.full_name();
    }
  };
  for (const Command* command : all_commands()) {
    expect_row(*command);
    for (const Command& subcommand : command->subcommands) expect_row(subcommand);
  }
}

TEST(Effects, of_each_command_are_told_in_words_that_replay_to_equal_data) {
  Replayed servers;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.command);
    servers.call("FLUSHALL");
    servers.call("FUNCTION FLUSH");
    for (const std::string& line : split_at_semicolons(row.before))
      ASSERT_NE(servers.call(line)[0], '-') << line;
    servers.pass_on();
    servers.call(row.command);
    const std::string told = joined(servers.pass_on());
    EXPECT_TRUE(glob_match(row.told, told)) << "told: " << told;
    servers.expect_equal_data();
  }
}

// Wherever the data comes from: the rows' commands in any order, in transactions and alone, while time
// passes.
TEST(Effects, of_a_random_history_replay_to_equal_data) {
  std::mt19937 random(20);
  Replayed servers;
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    for (const std::string& line : split_at_semicolons(row.before)) lines.push_back(line);
    if (!row.name.starts_with("b") || row.name.starts_with("bit")) lines.emplace_back(row.command);
  }
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("FLUSH"); });
  for (int step = 0; step < 4000; ++step) {
    const bool transaction = random() % 8 == 0;
    if (transaction) servers.call("MULTI");
    for (auto left = transaction ? random() % 4 : 1; left > 0; --left)
      servers.call(lines[random() % lines.size()]);
    if (transaction) servers.call("EXEC");
    if (random() % 16 == 0) servers.call("SELECT " + std::to_string(random() % 3));
    if (random() % 64 == 0) servers.original.advance_ms(60'000);
    if (random() % 64 == 0) pass_ms(servers.original, 1);
  }
  servers.pass_on();
  servers.expect_equal_data();
}

TEST(Effects, of_a_transaction_stand_between_multi_and_exec) {
  Replayed servers;
  for (const char* line : {"MULTI", "SET a 1", "GET a", "SELECT 2", "INCR b", "EXEC"}) servers.call(line);
  const auto told = servers.pass_on();
  EXPECT_EQ(joined(told), "MULTI; SET a 1; INCR b; EXEC");
  EXPECT_EQ(told[1].db, 0);
  EXPECT_EQ(told[2].db, 2);
  servers.expect_equal_data();
}

TEST(Effects, of_a_transaction_with_one_stand_alone) {
  Replayed servers;
  for (const char* line : {"MULTI", "GET a", "SET a 1", "EXEC", "MULTI", "GET a", "EXEC"}) servers.call(line);
  EXPECT_EQ(joined(servers.pass_on()), "SET a 1");
}

TEST(Effects, of_a_blocked_client_follow_those_that_woke_it) {
  Replayed servers;
  WireClient waiting = servers.original.connect();
  waiting.send(encode({"BLPOP", "l", "0"}));
  servers.original.run([](Server&) {});
  while (servers.original.run([](Server& s) { return s.blocking.size(); }) == 0) std::this_thread::yield();
  for (const char* line : {"MULTI", "RPUSH l a", "RPUSH l b", "EXEC"}) servers.call(line);
  EXPECT_EQ(waiting.reply(), "*2\r\n$1\r\nl\r\n$1\r\na\r\n");
  EXPECT_EQ(joined(servers.pass_on()), "MULTI; RPUSH l a; RPUSH l b; EXEC; LPOP l");
  servers.expect_equal_data();
}

TEST(Effects, tell_a_key_that_expired_before_the_command_that_found_it) {
  Replayed servers;
  servers.call("SET k 5 PX 10");
  servers.original.advance_ms(20);
  servers.call("INCR k");
  EXPECT_TRUE(glob_match("SET k 5 PXAT *; MULTI; DEL k; INCR k; EXEC", joined(servers.pass_on())));
  servers.expect_equal_data();
}

TEST(Effects, tell_keys_that_expire_unseen) {
  Replayed servers;
  servers.call("SELECT 1");
  servers.call("SET k 5 PX 10");
  servers.pass_on();
  pass_ms(servers.original, 20);
  const auto told = servers.pass_on();
  ASSERT_EQ(joined(told), "DEL k");
  EXPECT_EQ(told[0].db, 1);
}

TEST(Effects, tell_keys_that_are_evicted) {
  Replayed servers;
  for (int i = 0; i < 100; ++i) servers.call("SET key" + std::to_string(i) + " " + std::string(2000, 'x'));
  servers.call("CONFIG SET maxmemory-policy allkeys-random maxmemory " +
               std::to_string(used_memory() - 100'000));
  servers.call("GET a");
  servers.call("CONFIG SET maxmemory 0");
  servers.pass_on();
  EXPECT_LT(servers.original.run([](Server& s) { return s.databases[0]->size(); }), 100u);
  servers.expect_equal_data();
}

TEST(Effects, of_a_script_that_was_suspended_come_in_one_piece) {
  Settings settings = quiet_settings();
  settings.busy_reply_threshold_ms = 1;
  RunningServer server(std::move(settings));
  RecordedEffects effects(server);
  WireClient client = server.connect();
  client.call({"EVAL", "redis.call('set','a',1) for i = 1, 3000000 do end redis.call('set','b',2)", "0"});
  EXPECT_NE(server.log().find("Slow script detected"), std::string::npos);
  EXPECT_EQ(joined(effects.take()), "MULTI; set a 1; set b 2; EXEC");
}

TEST(Effects, are_not_gathered_while_nobody_listens) {
  RunningServer server;
  WireClient client = server.connect();
  client.call({"SET", "a", "1", "EX", "5"});
  RecordedEffects effects(server);
  client.call({"GET", "a"});
  EXPECT_EQ(joined(effects.take()), "");
  client.call({"SET", "a", "2"});
  EXPECT_EQ(joined(effects.take()), "SET a 2");
}

}  // namespace
}  // namespace weir::kv::testing
