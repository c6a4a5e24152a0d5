#!/usr/bin/env python3
"""Two ranks of torch.distributed: a TCPStore, and Gloo's collectives and messages over TCP.

usage: torch_distributed.py RANK HOST PORT
"""
import datetime
import os
import sys

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
import torch
import torch.distributed as distributed

RANKS, ROUNDS = 2, 60


def check(right, what):
    if not right:
        sys.exit(f"{what} is wrong")


def main():
    rank, host, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=60)
    store = distributed.TCPStore(host, port, RANKS, rank == 0, limit)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=limit)
    for turn in range(ROUNDS):
        store.set(f"{rank} in {turn}", str(turn * 7))
        check(store.get(f"{1 - rank} in {turn}") == str(turn * 7).encode(), "the store")
        for size in (1, 1000, 100_003):
            numbers = torch.arange(size, dtype=torch.float64) * (rank + turn)
            distributed.all_reduce(numbers)
            check(torch.equal(numbers, torch.arange(size, dtype=torch.float64) * (1 + 2 * turn)), f"all_reduce of {size}")
        numbers = torch.full((5000,), float(turn if rank == 0 else -1))
        distributed.broadcast(numbers, 0)
        check(bool((numbers == turn).all()), "broadcast")
        if rank == 0:
            distributed.send(numbers + 1, 1)
        else:
            distributed.recv(numbers, 0)
            check(bool((numbers == turn + 1).all()), "a message")
    distributed.barrier()
    print(f"{ROUNDS} rounds right", flush=True)


main()
