// What keepers are asked, as text; plans of hosts.
#include <gtest/gtest.h>

#include "twin/hosts/network_plan.hpp"
#include "twin/hosts/requests.hpp"

namespace weir::hosts {
namespace {

TEST(HostRequests, are_read_as_they_were_written) {
  using enum Request::Kind;
  for (const Request& request : {Request{join, "h3", ""},
                                 {variables, "h3", ""},
                                 {list, "", ""},
                                 {cables, "", ""},
                                 {plug_in, "rack-1.h_2", ""},
                                 {plug_out, "h3", ""},
                                 {plug_out, "leaf1", "spine1"},
                                 {end, "", ""}}) {
    const auto read = read_request(text_of(request));
    ASSERT_TRUE(read) << text_of(request);
    EXPECT_EQ(read->kind, request.kind);
    EXPECT_EQ(read->host, request.host);
    EXPECT_EQ(read->other, request.other);
  }
}

TEST(HostRequests, that_are_none_are_refused) {
  for (const char* text :
       {"", "join", "join ", "join  h3", "join h3 ", "join h3 x", "join ../h3", "join -h", "plug h3",
        "plug h3 up", "plug a b", "plug a b c in", "plug a  in", "list ", "list h3", "End", "join h3\n"})
    EXPECT_FALSE(read_request(text)) << text;
  EXPECT_FALSE(read_request("join " + std::string(max_request_bytes, 'h')));
}

TEST(HostRequests, listing_is_read_as_it_was_written) {
  const Listing listing{"two hosts of net.toml",
                        {{"h1", 0x0a4d0001, true, 4026532345, {1, 2}, {3, 4}}, {"h2", 7, false, 1, {}, {}}},
                        {}};
  EXPECT_EQ(read_listing(text_of(listing)), listing);
}

TEST(HostRequests, cables_are_read_as_they_were_written) {
  const std::vector<ListedCable> cables{{"leaf1", "spine1", true, {1, 2}, {3, 4}},
                                        {"leaf2", "spine1", false, {}, {}}};
  EXPECT_EQ(read_cables(text_of(cables)), cables);
  for (const char* text :
       {"a", "a b", "a b in", "a b up 1 2 3 4", "a b in 1 2 3 4 5", "a b in 1 2 3 x", "/ b in 1 2 3 4"})
    EXPECT_FALSE(read_cables(text)) << text;
}

TEST(HostRequests, listing_that_is_none_is_refused) {
  for (const char* text : {"title\nh1", "title\nh1 1 in", "title\nh1 1 in 1\n", "title\nh1 1 up 1 0 0 0 0\n",
                           "title\nh1 x in 1 0 0 0 0\n", "title\n/ 1 in 1 0 0 0 0\n",
                           "title\nh1 1 in 1 0 0 0 0 0\n", "title\nh1 99999999999 in 1 0 0 0 0\n"})
    EXPECT_FALSE(read_listing(text)) << text;
}

TEST(HostRequests, variables_name_their_host) {
  const std::string text = text_of(Variables{{"A", "/x/{host}/{host}.y"}, {"B", ""}}, "h3");
  EXPECT_EQ(text, "A=/x/h3/h3.y\nB=\n");
  EXPECT_EQ(read_variables(text), (Variables{{"A", "/x/h3/h3.y"}, {"B", ""}}));
  EXPECT_FALSE(read_variables("A"));
  EXPECT_FALSE(read_variables("=x\n"));
}

TEST(HostPlan, addresses_count_up_and_skip_broadcasts) {
  const auto hosts = hosts_by_order(std::vector<std::string>(252, "h"));
  EXPECT_EQ(dotted(hosts[0].ipv4), "10.77.0.1");
  EXPECT_EQ(dotted(hosts[249].ipv4), "10.77.0.250");
  EXPECT_EQ(dotted(hosts[250].ipv4), "10.77.1.1");
}

TEST(HostPlan, refusals_name_what_is_wrong) {
  const struct {
    std::vector<HostPlan> hosts;
    const char* what;
  } rows[] = {{{}, "no hosts"},
              {{{"a b", 1}}, "'a b'"},
              {{{"-a", 1}}, "'-a'"},
              {{{"a", 1}, {"a", 2}}, "two hosts are called 'a'"},
              {{{"localhost", 1}}, "'localhost'"},
              {{{"a", 1}, {"b", 1}}, "two hosts have the address 0.0.0.1"},
              {hosts_by_order(std::vector<std::string>(1001, "h")), "1001 hosts"}};
  for (const auto& [hosts, what] : rows) {
    const auto checked = check({.hosts = hosts});
    ASSERT_FALSE(checked) << what;
    EXPECT_EQ(checked.error().cause, Cause::invalid_plan);
    EXPECT_NE(checked.error().what.find(what), std::string::npos) << checked.error().what;
  }
}

}  // namespace
}  // namespace weir::hosts
