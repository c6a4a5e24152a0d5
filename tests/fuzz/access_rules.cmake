weir_fuzz_target(access_rules SOURCES access_rules_fuzz.cpp LINK weir_kv)
