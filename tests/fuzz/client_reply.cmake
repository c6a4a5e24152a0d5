weir_fuzz_target(client_reply SOURCES client_reply_fuzz.cpp LINK weir_client)
