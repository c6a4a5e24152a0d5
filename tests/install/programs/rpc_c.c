/* Somebody else's program, built against an installed Weir's C library: calls what a Python program serves.
 * Usage: rpc_c ADDRESS */
#include <stdio.h>
#include <weir_rpc.h>

int main(int count, char** words) {
  weir_rpc_client* client;
  weir_rpc_error error;
  weir_rpc_call call = WEIR_RPC_CALL("add");
  weir_rpc_reply* reply;
  size_t size = 0;
  const unsigned char* body;
  if (count != 2 || weir_rpc_connect(&client, words[1], NULL, &error) != 0) return puts(error.message), 1;
  call.arguments = "\x92\x02\x03", call.arguments_size = 3; /* MessagePack: [2, 3] */
  reply = weir_rpc_run(client, &call);
  body = weir_rpc_reply_body(reply, &size);
  printf("%s %d\n", weir_rpc_reply_message(reply), size == 1 ? body[0] : -1);
  weir_rpc_reply_free(reply);
  weir_rpc_close(client);
  return 0;
}
