#include "tests/bystander/long_requests.hpp"

#include <algorithm>
#include <functional>

#include "tests/kv/wire_client.hpp"

namespace weir::bystander {
namespace {

// Of each pair, the second has half of its members in common with the first.
constexpr LongRequests of_large_values[] = {
    "hgetall hash",
    "hkeys hash",
    "hvals hash",
    "hrandfield hash *N withvalues",
    "hrandfield hash -*N",
    "hscan hash 0 count *N",
    "smembers set",
    "srandmember set *N",
    "srandmember set -*N",
    "sscan set 0 match *absent* count *N",
    "sinter set other-set",
    "sintercard 2 set other-set",
    "sinterstore to set other-set",
    "sunion set other-set",
    "sunionstore to set other-set",
    "sdiff set other-set",
    "sdiffstore to set other-set",
    "copy set to replace; spop to *N",
    "lrange list 0 -1",
    "lindex list *half",
    "lpos list absent",
    "lpos list 1 count 0 maxlen 0",
    "copy list to replace; linsert to before absent x",
    "copy list to replace; lset to *half x",
    "copy list to replace; lrem to 0 absent",
    "copy list to replace; lrem to 0 1",
    "copy list to replace; ltrim to *half -1",
    "copy list to replace; lmpop 1 to right count *N",
    "copy list to replace; blmpop 0 1 to left count *N",
    "zrange zset 0 -1 withscores",
    "zrevrange zset 0 -1",
    "zrangebyscore zset -inf +inf",
    "zrevrangebyscore zset +inf -inf",
    "zrangebylex zset - +",
    "zrevrangebylex zset + -",
    "zrangestore to zset 0 -1",
    "zrandmember zset *N withscores",
    "zrandmember zset -*N",
    "zscan zset 0 count *N",
    "zunion 2 zset other-zset withscores",
    "zunionstore to 2 zset other-zset",
    "zinter 2 zset other-zset",
    "zintercard 2 zset other-zset",
    "zinterstore to 2 zset set aggregate max",
    "zdiff 2 zset other-zset",
    "zdiffstore to 2 zset other-zset",
    "copy zset to replace; zremrangebyrank to 1 -2",
    "copy zset to replace; zremrangebyscore to -inf *half",
    "copy zset to replace; zremrangebylex to - +",
    "copy zset to replace; zmpop 1 to max count *N",
    "copy zset to replace; bzmpop 0 1 to min count *N",
    "copy zset to replace; zpopmin to *N",
    "sort list",
    "sort list alpha desc store to",
    "sort_ro set by absent-* get hash->* get #",
    "georadius geo 10 10 30000 km withdist",
    "georadius_ro geo 10 10 30000 km",
    "georadiusbymember geo 1 30000 km",
    "georadiusbymember_ro geo 1 30000 km asc",
    "geosearch geo fromlonlat 10 10 bybox 30000 30000 km",
    "geosearch geo bypolygon 3 0 0 179 0 90 80 desc withdist",
    "geosearchstore to geo fromlonlat 10 10 byradius 30000 km",
    "bitcount text",
    "bitpos text 0",
    "bitop not to text",
    "bitop xor to text other-text text",
    "getrange text 0 -1",
    "substr text 0 -1",
    "setrange to 4000000 x",
    "setbit to 40000000 1",
    "bitfield to set u8 #5000000 1 get u8 #1000",
    "lcs lcs-a lcs-b",
    "lcs lcs-a lcs-b idx",
    "del to; pfmerge to counter other-counter",
    "pfcount counter other-counter",
    "pfdebug getreg counter",
    "pfselftest",
    "xrange stream - +",
    "xrevrange stream + -",
    "xread count *N streams stream 0",
    "xreadgroup group readers reader count *N streams stream 0",
    "copy stream to replace; xgroup setid to readers 0; xreadgroup group readers other count *N streams to "
    ">; "
    "xautoclaim to readers third 0 0 count *N",
    "copy stream to replace; xtrim to maxlen 1",
    "copy stream to replace; xgroup delconsumer to readers reader",
    "copy stream to replace; xgroup destroy to readers",
    "xpending stream readers - + *N",
    "xinfo stream stream full count 0",
    "dump hash",
    "dump zset",
    "dump stream",
    "copy hash to replace; del to",
    "copy zset to replace; rename to elsewhere",
    "copy list to replace; set to x",
    "copy stream to replace; setex to 100 x",
    "copy set to replace; psetex to 100000 x",
    "copy hash to replace; mset to x elsewhere y",
    "copy hash to replace; msetex 2 to x elsewhere y ex 100",
    "copy hash to replace; expire to -1",
    "memory usage zset samples 0",
    "keys *",
    "keys *a*a*a*a*a*a*a*a*a*b",
    "scan 0 match *a*a*a*a*a*a*a*b count *N",
    "multi; hgetall hash; smembers set; zrange zset 0 -1; exec",
};

constexpr LongRequests of_expiring_fields[] = {
    "hset fields *pairs; hexpire fields 1000 fields *N *fields",
    "hpexpire fields 1000000 fields *N *fields",
    "hexpireat fields 5000000000 fields *N *fields",
    "hpexpireat fields 5000000000000 fields *N *fields",
    "hsetex fields ex 1000 fields *N *pairs",
    "hsetex fields keepttl fields *N *pairs",
    "hgetex fields px 900000 fields *N *fields",
    "httl fields fields *N *fields",
    "hpttl fields fields *N *fields",
    "hexpiretime fields fields *N *fields",
    "hpexpiretime fields fields *N *fields",
    "hgetall fields",
    "hkeys fields",
    "hmget fields *fields",
    "hrandfield fields *N",
    "hscan fields 0 count *N",
    "hscan fields 0 count *N novalues",
    "dump fields",
    "memory usage fields",
    "copy fields to replace; hpersist to fields *N *fields",
    "copy fields to replace; hgetex to persist fields *N *fields",
    "copy fields to replace; hgetdel to fields *N *fields",
    "copy fields to replace; hdel to *fields",
    "copy fields to replace; hset to *pairs",
    "copy fields to replace; hpexpire to 0 fields *N *fields",
    "copy fields to replace; del to",
    "copy fields to replace; rename to elsewhere",
    "copy fields to replace; rename elsewhere to",
    // They are due a millisecond later, while the next request is read.
    "hsetex due px 1 fields *N *pairs; hlen due; hgetall due; hrandfield due 10; hexists due f1",
    "hsetex due px 1 fields *N *pairs; hmget due *fields",
    "hsetex due px 1 fields *N *pairs; hpersist due fields *N *fields",
    "hsetex due px 1 fields *N *pairs; hset due stays x; copy due to replace; dump due; hscan due 0 count *N",
    "hsetex due px 1 fields *N *pairs; del due",
    "hsetex due px 5 fields *N *pairs; hset due stays x; multi; hlen due; hvals due; exec",
};

constexpr NeverLong without_row[] = {
    {"it looks at one key's header, or adds and takes one element",
     "object psubscribe punsubscribe ssubscribe subscribe sunsubscribe unsubscribe blmove blpop brpop "
     "brpoplpush lmove rpoplpush randomkey wait waitaof"},
    {"its work is what the request names",
     "delifeq geoadd geodist geohash geopos msetnx restore restore-asking config latency slowlog commandlog "
     "pubsub"},
    {"it looks at what the server is, not at its data; clients, users and settings are bounded by their own "
     "limits",
     "acl client command info memory|doctor memory|help memory|malloc-stats memory|purge memory|stats module "
     "cluster xgroup|create xgroup|createconsumer xgroup|help xinfo|consumers xinfo|groups xinfo|help"},
    {"it takes turns with the clients (tests/kv/snapshots_test, aof_rewrite_test, replicas_test, "
     "migrate_test)",
     "bgsave bgrewriteaof sync psync replconf replicaof slaveof migrate"},
    {"it asks for everybody to wait, or to leave", "save shutdown debug failover"},
    {"the set-up begins with it; of all databases, the victims' keys would be gone, too", "flushdb flushall"},
    {"a script is suspended, and others are told BUSY (tests/kv/scripting_test)",
     "eval eval_ro evalsha evalsha_ro fcall fcall_ro script function"},
    {"it is sent a copy of each request, within client-output-buffer-limit", "monitor"},
};

using Words = std::vector<std::string>;

std::vector<std::string> empty_database() {
  return {kv::testing::encode({"SELECT", "9"}), kv::testing::encode({"FLUSHDB"})};
}

std::string number(std::size_t i) { return std::to_string(i); }

// Requests of a thousand elements each: `command key`, and for each element the words that `add` appends.
void many(std::vector<std::string>& requests, const Words& head, std::size_t elements,
          const std::function<void(Words&, std::size_t)>& add) {
  constexpr std::size_t at_once = 1000;
  for (std::size_t i = 0; i < elements;) {
    Words words = head;
    for (const std::size_t end = std::min(elements, i + at_once); i < end; ++i) add(words, i);
    requests.push_back(kv::testing::encode(words));
  }
}

void replace_all(std::string& word, std::string_view what, const std::string& by) {
  if (const std::size_t at = word.find(what); at != std::string::npos) word.replace(at, what.size(), by);
}

void append(Words& words, std::string word, std::size_t elements) {
  const bool pairs = word == "*pairs";
  if (pairs || word == "*fields") {
    for (std::size_t i = 0; i < elements; ++i) {
      words.push_back("f" + number(i));
      if (pairs) words.push_back("v" + number(i));
    }
    return;
  }
  replace_all(word, "*N", number(elements));
  replace_all(word, "*half", number(elements / 2));
  words.push_back(std::move(word));
}

}  // namespace

std::span<const LongRequests> requests_of_large_values() { return of_large_values; }
std::span<const LongRequests> requests_of_expiring_fields() { return of_expiring_fields; }
std::span<const NeverLong> never_long() { return without_row; }

std::vector<std::string> make_large_values(std::size_t elements) {
  std::vector<std::string> requests = empty_database();
  const auto say = [&](const Words& words) { requests.push_back(kv::testing::encode(words)); };
  const auto shifted = [elements](std::size_t i) { return number(i + elements / 2); };
  const auto text = [](Words& words, std::size_t i) { words.push_back(number(i)); };
  many(requests, {"HSET", "hash"}, elements, [](Words& words, std::size_t i) {
    words.push_back(number(i));
    words.push_back("value of " + number(i));
  });
  many(requests, {"SADD", "set"}, elements, text);
  many(requests, {"SADD", "other-set"}, elements,
       [&](Words& words, std::size_t i) { words.push_back(shifted(i)); });
  many(requests, {"RPUSH", "list"}, elements, text);
  many(requests, {"ZADD", "zset"}, elements, [](Words& words, std::size_t i) {
    words.push_back(number(i));
    words.push_back(number(i));
  });
  many(requests, {"ZADD", "other-zset"}, elements, [&](Words& words, std::size_t i) {
    words.push_back(number(i));
    words.push_back(shifted(i));
  });
  many(requests, {"GEOADD", "geo"}, elements, [](Words& words, std::size_t i) {
    words.push_back(number(i % 180));
    words.push_back(number(i / 180 % 80));
    words.push_back(number(i));
  });
  many(requests, {"PFADD", "counter"}, elements, text);
  many(requests, {"PFADD", "other-counter"}, elements,
       [&](Words& words, std::size_t i) { words.push_back(shifted(i)); });
  for (std::size_t i = 1; i <= elements; ++i) say({"XADD", "stream", number(i), "field", number(i)});
  say({"XGROUP", "CREATE", "stream", "readers", "0"});
  say({"XREADGROUP", "GROUP", "readers", "reader", "COUNT", number(elements), "STREAMS", "stream", ">"});
  say({"SET", "text", std::string(4'000'000, '\xff')});
  say({"SET", "other-text", std::string(1'000'000, 'o')});
  say({"SET", "lcs-a", std::string(2'000, 'a') + "x"});
  say({"SET", "lcs-b", std::string(2'000, 'a') + "y"});
  say({"SET", std::string(1000, 'a'), "a name for KEYS"});
  say({"SET", "elsewhere", "x"});
  return requests;
}

std::vector<std::string> make_expiring_fields(std::size_t elements) {
  std::vector<std::string> requests = empty_database();
  for (const std::string& request :
       expand("hset fields *pairs; hexpire fields 1000 fields *N *fields; set elsewhere x", elements))
    requests.push_back(request);
  return requests;
}

std::vector<std::string> expand(LongRequests row, std::size_t elements) {
  std::vector<std::string> requests;
  Words words;
  const auto end_request = [&] {
    if (!words.empty()) requests.push_back(kv::testing::encode(words));
    words.clear();
  };
  while (!row.empty()) {
    const std::size_t end = std::min(row.find_first_of(" ;"), row.size());
    if (end > 0) append(words, std::string(row.substr(0, end)), elements);
    if (end < row.size() && row[end] == ';') end_request();
    row.remove_prefix(std::min(end + 1, row.size()));
  }
  end_request();
  return requests;
}

}  // namespace weir::bystander
