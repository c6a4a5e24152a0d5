/* What is refused with the name of what is wrong. */
#include "fixture.h"
#include "tests.h"

void bad_settings_are_named(weir_rpc_client* client) {
  (void)client;
  static const struct {
    const char *name, *value, *says;
  } bad[] = {{"colour", "red", "colour"},
             {"timeout_ms", "soon", "soon"},
             {"timeout_ms", "-1", "-1"},
             {"timeout_ms", "", "timeout_ms"},
             {"tls.check_certificate", "2", "0 to 1"},
             {"compression", "gzip", "gzip"},
             {"rdma.provider", "mine", "mine"}};
  weir_rpc_error error;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    CHECK(weir_rpc_options_set(options, bad[i].name, bad[i].value, &error) == WEIR_RPC_BAD_SETTING);
    CHECK(error.code == WEIR_RPC_BAD_SETTING && strstr(error.message, bad[i].says) != NULL);
  }
  weir_rpc_client* none = NULL;
  CHECK(weir_rpc_connect(&none, "ftp://x:1", NULL, &error) == WEIR_RPC_BAD_ADDRESS && none == NULL);
  CHECK(weir_rpc_connect(&none, "unix:///nowhere/at/all", NULL, &error) == WEIR_RPC_UNREACHABLE);
  CHECK(weir_rpc_connect(NULL, address, NULL, NULL) == WEIR_RPC_BAD_SETTING);
  CHECK(weir_rpc_server_add(server, "test.late", NULL, nothing, NULL, &error) == WEIR_RPC_BAD_SETTING);
  CHECK(strcmp(weir_rpc_code_name(WEIR_RPC_OVERLOADED), "overloaded") == 0);
  CHECK(strcmp(weir_rpc_code_name(9999), "unknown") == 0);
}
