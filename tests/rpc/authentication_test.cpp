// Who may call: tokens and client certificates, for a connection and for each call.
#include <gmock/gmock.h>

#include "rpc/pool.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace {
std::string who(weir::rpc::Context& context) { return context.identity().name; }
asio::awaitable<std::string> who_later(weir::rpc::Context& context) { co_return context.identity().name; }
}  // namespace

namespace weir::rpc {
namespace {

using testing_support::RpcTest;

class AuthenticationTest : public RpcTest {
 protected:
  // Accepts the token "open <name>", and a certificate for its name.
  static Result<Identity> by_token_or_certificate(const Credentials& shown) {
    if (shown.token.starts_with("open ")) return Identity{.name = shown.token.substr(5)};
    if (shown.token.empty() && !shown.certificate.empty()) return Identity{.name = shown.certificate};
    return fail(Errc::unauthenticated, "'" + shown.token + "' opens nothing");
  }
  // Like the one above, except that "open old" has expired.
  static Authentication whose_old_one_has_expired() {
    Authentication authentication;
    authentication.authenticate = [](const Credentials& shown) -> Result<Identity> {
      Result<Identity> identity = by_token_or_certificate(shown);
      if (identity && identity->name == "old") identity->expires = std::chrono::steady_clock::now();
      return identity;
    };
    return authentication;
  }

  void start(Authentication authentication) {
    ServerOptions options;
    options.authentication = std::move(authentication);
    serve<who, who_later, shop::add, shop::reflect>(std::move(options));
  }

  // The client that `body` gets sends the token that `token` returns.
  void with_token(TokenProvider token, std::function<asio::awaitable<void>(Client&)> body) {
    run([=, this]() -> asio::awaitable<void> {
      ConnectOptions options = connect_options();
      options.token = token;
      auto client = co_await connect(address, options);
      if (!client) throw std::runtime_error(client.error().what);
      co_await body(*client);
    });
  }
};

TEST_P(AuthenticationTest, a_token_becomes_the_identity_of_each_call) {
  start({by_token_or_certificate, nullptr});
  with_token([] { return "open anna"; },
             [](Client& client) -> asio::awaitable<void> {
               EXPECT_EQ(co_await client.call<who>(), "anna");
               EXPECT_EQ(co_await client.call<who_later>(), "anna");
             });
}

TEST_P(AuthenticationTest, a_wrong_token_ends_the_connection_before_anything_runs) {
  start({by_token_or_certificate, nullptr});
  with_token([] { return "closed"; },
             [](Client& client) -> asio::awaitable<void> {
               const auto refused = co_await client.call<who>();
               EXPECT_EQ(refused.error().code, Errc::unauthenticated);
               EXPECT_EQ(refused.error().what, "'closed' opens nothing");
               EXPECT_TRUE(did_not_run(refused.error().code));
               EXPECT_FALSE(client.is_open());
             });
}

// With TLS, the fixture's client shows a certificate that the server checked.
TEST_P(AuthenticationTest, a_certificate_is_taken_where_there_is_one) {
  start({by_token_or_certificate, nullptr});
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    const auto name = co_await client.call<who>();
    if (over("tls")) {
      EXPECT_EQ(name, "CN=client");
    } else {
      EXPECT_EQ(name.error().code, Errc::unauthenticated);
    }
  });
}

TEST_P(AuthenticationTest, each_call_is_authorised) {
  Authentication authentication;
  authentication.authenticate = by_token_or_certificate;
  authentication.authorise = [](const Identity& caller, std::string_view method) -> Result<void> {
    if (method == "who" || caller.name == "anna") return {};
    return fail(Errc::denied, caller.name + " may not call " + std::string(method));
  };
  start(authentication);
  with_token(
      [] { return "open anna"; },
      [](Client& client) -> asio::awaitable<void> { EXPECT_EQ(co_await client.call<shop::add>(1, 2), 3); });
  with_token([] { return "open bert"; },
             [](Client& client) -> asio::awaitable<void> {
               const auto refused = co_await client.call<shop::add>(1, 2);
               EXPECT_EQ(refused.error().code, Errc::denied);
               EXPECT_EQ(refused.error().what, "bert may not call shop.add");
               EXPECT_EQ(co_await client.call<who>(), "bert");  // the connection continues
             });
}

TEST_P(AuthenticationTest, without_authenticate_everybody_is_anonymous) {
  Authentication authentication;
  authentication.authorise = [](const Identity& caller, std::string_view method) -> Result<void> {
    if (method == "who" && caller.name.empty()) return {};
    return fail(Errc::denied, "only who");
  };
  start(authentication);
  with_token([] { return "open anna"; },
             [](Client& client) -> asio::awaitable<void> {
               EXPECT_EQ(co_await client.call<who>(), "");
               EXPECT_EQ((co_await client.call<shop::add>(1, 2)).error().code, Errc::denied);
             });
}

TEST_P(AuthenticationTest, an_expired_identity_is_renewed_with_the_provider_s_next_token) {
  start(whose_old_one_has_expired());
  int asked = 0;
  const TokenProvider provider = [&] { return ++asked == 1 ? "open old" : "open new"; };
  with_token(provider, [&](Client& client) -> asio::awaitable<void> {
    const auto expired = co_await client.call<who>();
    EXPECT_EQ(expired.error().code, Errc::unauthenticated);
    EXPECT_TRUE(client.is_open());
    EXPECT_EQ(co_await client.call<who>(), "new");
    EXPECT_EQ(asked, 2);
  });
}

TEST_P(AuthenticationTest, calls_that_were_refused_for_one_token_ask_for_the_next_once) {
  start(whose_old_one_has_expired());
  int asked = 0;
  const TokenProvider provider = [&] { return ++asked == 1 ? "open old" : "open new"; };
  with_token(provider, [&](Client& client) -> asio::awaitable<void> {
    constexpr int calls = 20;
    const auto executor = co_await asio::this_coro::executor;
    int ended = 0, refused = 0;
    for (int i = 0; i < calls; ++i)
      asio::co_spawn(executor, client.call<who>(),
                     [&](const std::exception_ptr&, const Result<std::string>& result) {
                       ++ended;
                       refused += !result && result.error().code == Errc::unauthenticated ? 1 : 0;
                     });
    while (ended < calls) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_EQ(refused, calls);
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(co_await client.call<who>(), "new");
    EXPECT_EQ(asked, 2);
  });
}

// The connection's first token has expired, and the provider may or may not have another.
TEST_P(AuthenticationTest, a_pool_makes_calls_again_once_that_were_refused_for_an_expired_token) {
  constexpr int calls = 20;
  for (const bool another : {true, false}) {
    SCOPED_TRACE(another);
    start(whose_old_one_has_expired());
    int asked = 0, good = 0, refused = 0;
    PoolOptions options;
    options.connect = connect_options();
    options.connect.token = [&] { return ++asked == 1 || !another ? "open old" : "open new"; };
    options.retry.attempts = 1;
    Pool pool(io, static_list({address}), options);
    const auto call = [&]() -> asio::awaitable<void> {
      Buffer given = Buffer::copy_of("again"), back;
      CallOptions with;
      with.attachment_given = &given;
      with.reply_attachment = &back;
      const auto bytes = co_await pool.call<shop::reflect>(with);
      good += bytes && back.text() == "again" ? 1 : 0;
      refused += !bytes && bytes.error().code == Errc::unauthenticated ? 1 : 0;
    };
    for (int i = 0; i < calls; ++i) asio::co_spawn(io, call(), [](const std::exception_ptr&) {});
    run_until([&] { return good + refused == calls; });
    EXPECT_EQ(good, another ? calls : 0);
    if (another) {
      EXPECT_EQ(asked, 2);
    }
  }
}

TEST_P(AuthenticationTest, a_newer_token_that_is_refused_refuses_later_calls_only) {
  Authentication authentication;
  authentication.authenticate = [](const Credentials& shown) -> Result<Identity> {
    Result<Identity> identity = by_token_or_certificate(shown);
    if (identity) identity->expires = std::chrono::steady_clock::now();
    return identity;
  };
  start(authentication);
  int asked = 0;
  const TokenProvider provider = [&] { return ++asked == 1 ? "open old" : "closed"; };
  with_token(provider, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<who>()).error().what, "the credentials have expired: send new ones");
    const auto refused = co_await client.call<who>();
    EXPECT_EQ(refused.error().code, Errc::unauthenticated);
    EXPECT_EQ(refused.error().what, "'closed' opens nothing");
    EXPECT_TRUE(client.is_open());
  });
}

TEST_P(AuthenticationTest, a_newer_token_that_cannot_be_had_is_asked_for_again) {
  start(whose_old_one_has_expired());
  int asked = 0;
  const TokenProvider provider = [&]() -> std::string {
    if (++asked == 2) throw std::runtime_error("no such file");
    return asked == 1 ? "open old" : "open new";
  };
  with_token(provider, [&](Client& client) -> asio::awaitable<void> {
    for (int i = 0; i < 2; ++i) {
      const auto refused = co_await client.call<who>();
      EXPECT_EQ(refused ? Errc{} : refused.error().code, Errc::unauthenticated);
    }
    EXPECT_EQ(asked, 3);
    EXPECT_EQ(co_await client.call<who>(), "new");
  });
}

TEST_P(AuthenticationTest, a_check_that_throws_lets_nobody_in) {
  Authentication authentication;
  authentication.authenticate = [](const Credentials&) -> Result<Identity> {
    throw std::runtime_error("no directory");
  };
  start(authentication);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto refused = co_await client.call<who>();
    EXPECT_EQ(refused.error().code, Errc::unauthenticated);
    EXPECT_THAT(refused.error().what, testing::HasSubstr("no directory"));
  });
}

TEST_P(AuthenticationTest, what_is_no_std_exception_lets_nobody_in_either) {
  const auto throws = [](const auto&...) -> Result<Identity> { throw 7; };
  const auto forbids = [](const auto&...) -> Result<void> { throw 7; };
  start({throws, nullptr});
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<who>()).error().code, Errc::unauthenticated);
  });
  start({by_token_or_certificate, forbids});
  with_token([] { return "open anna"; },
             [](Client& client) -> asio::awaitable<void> {
               EXPECT_EQ((co_await client.call<who>()).error().code, Errc::denied);
             });
  run([this]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    options.token = []() -> std::string { throw 7; };
    const auto client = co_await connect(address, options);
    EXPECT_FALSE(client);
    EXPECT_EQ(client.error().code, Errc::unauthenticated);
  });
}

INSTANTIATE_TEST_SUITE_P(Over, AuthenticationTest, testing_support::transports,
                         testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
