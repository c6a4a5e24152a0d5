module weir/rpc

go 1.19
