weir_fuzz_target(resp_request SOURCES resp_request_fuzz.cpp LINK weir_kv)
