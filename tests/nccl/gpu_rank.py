#!/usr/bin/env python3
"""A rank of on_a_gpu.py: NCCL itself (libnccl.so.2 by ctypes) over whatever network its environment names.

usage: gpu_rank.py RANK RANKS FOLDER TASK [SEED]    the last line of its output is its result as a JSON object

Tasks: `check` compares results with known answers, `speed` times all_reduce, `until_error` runs until NCCL reports an error,
`torch` uses torch.distributed. Every rank can compute every other rank's data, which are random numbers from the seed, the rank
and the case. The ranks meet in FOLDER.
"""
import ctypes
import faulthandler
import json
import os
import pathlib
import sys
import time
import traceback

import torch

# ncclDataType_t and ncclRedOp_t of nccl.h
DTYPES = {torch.int8: 0, torch.uint8: 1, torch.int32: 2, torch.int64: 4, torch.float16: 6, torch.float32: 7, torch.float64: 8,
          torch.bfloat16: 9}
SUM, MAX, MIN = 0, 2, 3
IN_PROGRESS = 7
WAIT_S = 25


class NcclError(Exception):
    pass


class _UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Nccl:
    """libnccl.so.2, which torch has loaded. Counts are in elements, as in NCCL; addresses are torch's."""

    def __init__(self):
        self.lib = ctypes.CDLL("libnccl.so.2")
        self.lib.ncclGetErrorString.restype = ctypes.c_char_p

    def __getattr__(self, name):
        function = getattr(self.lib, name)

        def checked(*arguments):
            status = function(*arguments)
            if status not in (0, IN_PROGRESS):
                raise NcclError(f"{name}: {self.lib.ncclGetErrorString(status).decode()} ({status})")
        return checked

    def version(self):
        number = ctypes.c_int()
        self.ncclGetVersion(ctypes.byref(number))
        return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"


class Communicator:
    def __init__(self, nccl, handle, rank, ranks):
        self.nccl, self.handle, self.rank, self.ranks = nccl, handle, rank, ranks

    @classmethod
    def of_all(cls, nccl, rank, ranks, folder, name="id"):
        unique, file = _UniqueId(), folder / name
        if rank == 0:
            nccl.ncclGetUniqueId(ctypes.byref(unique))
            partial = folder / f"{name}.partial"
            partial.write_bytes(bytes(memoryview(unique)))
            partial.rename(file)
        else:
            wait_for(file)
            ctypes.memmove(ctypes.byref(unique), file.read_bytes(), 128)
        handle = ctypes.c_void_p()
        nccl.ncclCommInitRank(ctypes.byref(handle), ctypes.c_int(ranks), unique, ctypes.c_int(rank))
        return cls(nccl, handle, rank, ranks)

    def split(self, color, key):
        handle = ctypes.c_void_p()
        self.nccl.ncclCommSplit(self.handle, ctypes.c_int(color), ctypes.c_int(key), ctypes.byref(handle), None)
        return Communicator(self.nccl, handle, key, self.ranks)

    def _stream(self):
        return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def all_reduce(self, source, into, operation=SUM):
        self.nccl.ncclAllReduce(at(source), at(into), count(source), kind(source), ctypes.c_int(operation), self.handle,
                                self._stream())

    def reduce_scatter(self, source, into):
        self.nccl.ncclReduceScatter(at(source), at(into), count(into), kind(source), ctypes.c_int(SUM), self.handle, self._stream())

    def all_gather(self, source, into):
        self.nccl.ncclAllGather(at(source), at(into), count(source), kind(source), self.handle, self._stream())

    def broadcast(self, source, into, root):
        self.nccl.ncclBroadcast(at(source), at(into), count(into), kind(into), ctypes.c_int(root), self.handle, self._stream())

    def exchange(self, sends, receives):
        """Sends and receives lists of (rank, tensor), as one group."""
        self.nccl.ncclGroupStart()
        for peer, tensor in sends:
            self.nccl.ncclSend(at(tensor), count(tensor), kind(tensor), ctypes.c_int(peer), self.handle, self._stream())
        for peer, tensor in receives:
            self.nccl.ncclRecv(at(tensor), count(tensor), kind(tensor), ctypes.c_int(peer), self.handle, self._stream())
        self.nccl.ncclGroupEnd()

    def error(self):
        """The communicator's asynchronous error; 0: none."""
        status = ctypes.c_int()
        self.nccl.ncclCommGetAsyncError(self.handle, ctypes.byref(status))
        return 0 if status.value == IN_PROGRESS else status.value

    def wait(self, limit_s=WAIT_S):
        """Waits until the stream is done; raises NcclError if the communicator fails meanwhile."""
        done = torch.cuda.Event()
        done.record()
        until = time.monotonic() + limit_s
        while not done.query():
            if status := self.error():
                raise NcclError(f"{self.nccl.lib.ncclGetErrorString(status).decode()} ({status})")
            if time.monotonic() > until:
                raise NcclError(f"not done after {limit_s} s, and NCCL reports no error")

    def destroy(self):
        self.nccl.ncclCommDestroy(self.handle)

    def abort(self):
        self.nccl.ncclCommAbort(self.handle)


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def count(tensor):
    return ctypes.c_size_t(tensor.numel())


def kind(tensor):
    return ctypes.c_int(DTYPES[tensor.dtype])


def wait_for(file):
    until = time.monotonic() + WAIT_S
    while not file.exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{file.name} did not come")
        time.sleep(0.005)


def sample(seed, rank, case, elements, dtype):
    """Small whole numbers, whose sums are exact in every dtype."""
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed * 1000003 + rank * 1009 + case)
    return torch.randint(0, 8, (elements,), generator=generator, device="cuda").to(dtype)


class Checks:
    """Compares every operation with known answers."""

    def __init__(self, comm, seed):
        self.comm, self.seed, self.case, self.done = comm, seed, 0, 0

    def data(self, rank, elements, dtype):
        return sample(self.seed, rank, self.case, elements, dtype)

    def same(self, what, got, expected):
        self.comm.wait()
        self.done += 1
        if not torch.equal(got, expected):
            wrong = (got != expected).nonzero().flatten()
            raise AssertionError(f"{what} of {expected.numel()} x {expected.dtype}: {wrong.numel()} elements differ, the first at "
                                 f"{wrong[0].item()}: {got[wrong[0]].item()} for {expected[wrong[0]].item()}")

    def run(self, elements, dtype):
        comm, ranks, me = self.comm, self.comm.ranks, self.comm.rank
        self.case += 1
        all_data = [self.data(rank, elements, dtype) for rank in range(ranks)]
        mine, total = all_data[me], torch.stack(all_data).sum(0).to(dtype)

        into = torch.zeros_like(mine)
        comm.all_reduce(mine, into)
        self.same("all_reduce", into, total)
        comm.all_reduce(mine, into, MAX)
        self.same("all_reduce max", into, torch.stack(all_data).amax(0))
        in_place = mine.clone()
        comm.all_reduce(in_place, in_place, MIN)
        self.same("all_reduce min, in place", in_place, torch.stack(all_data).amin(0))

        gathered = torch.zeros(ranks * elements, dtype=dtype, device="cuda")
        comm.all_gather(mine, gathered)
        self.same("all_gather", gathered, torch.cat(all_data))

        everybodys = [self.data(100 + rank, ranks * elements, dtype) for rank in range(ranks)]
        into = torch.zeros_like(mine)
        comm.reduce_scatter(everybodys[me], into)
        part = slice(me * elements, (me + 1) * elements)
        self.same("reduce_scatter", into, torch.stack(everybodys).sum(0).to(dtype)[part])

        for root in range(ranks):
            into = torch.zeros_like(mine)
            comm.broadcast(mine, into, root)
            self.same(f"broadcast from {root}", into, all_data[root])

        into = torch.zeros_like(mine)
        comm.exchange([((me + 1) % ranks, mine)], [((me - 1) % ranks, into)])
        self.same("send and receive", into, all_data[(me - 1) % ranks])

        # A different size for each pair; some pairs send nothing.
        size = lambda sender, receiver: elements * ((sender * 3 + receiver * 5) % 4) // 3
        parts = lambda sender, receiver: self.data(200 + sender * ranks + receiver, size(sender, receiver), dtype)
        others = [rank for rank in range(ranks) if rank != me]
        sends = [(rank, parts(me, rank)) for rank in others if size(me, rank)]
        receives = [(rank, torch.zeros(size(rank, me), dtype=dtype, device="cuda")) for rank in others if size(rank, me)]
        comm.exchange(sends, receives)
        for rank, got in receives:
            self.same(f"all_to_all from {rank}", got, parts(rank, me))


def check(comm, seed, sizes, dtypes):
    checks = Checks(comm, seed)
    for elements in sizes:
        for dtype in dtypes:
            checks.run(elements, dtype)
    # Several communicators at once, ended in another order than they were made.
    if hasattr(comm.nccl.lib, "ncclCommSplit"):
        others = [comm.split(0, comm.rank) for _ in range(3)]
        for _ in range(2):
            for each in others:
                Checks(each, seed).run(3001, torch.float32)
        for each in (others[1], others[0], others[2]):
            each.destroy()
        checks.run(70001, torch.float32)
    comm.destroy()
    return {"checks": checks.done}


SPEED_SIZES = {8: 100, 4 << 10: 100, 64 << 10: 100, 1 << 20: 60, 16 << 20: 20, 64 << 20: 10, 256 << 20: 4}


def speed(comm):
    seen = {}
    for bytes_, rounds in SPEED_SIZES.items():
        data = torch.ones(bytes_ // 4, dtype=torch.float32, device="cuda")
        into = torch.empty_like(data)
        for _ in range(3):
            comm.all_reduce(data, into)
        comm.wait()
        begin = time.monotonic()
        for _ in range(rounds):
            comm.all_reduce(data, into)
        comm.wait()
        seconds = (time.monotonic() - begin) / rounds
        if not bool((into == comm.ranks).all()):
            raise AssertionError(f"all_reduce of {bytes_} bytes gave a wrong sum")
        seen[bytes_] = seconds
    comm.destroy()
    return {"seconds": seen}


def until_error(comm, folder):
    """Returns how long NCCL takes to report an error, and how long its abort takes."""
    data = torch.ones(1 << 18, dtype=torch.float32, device="cuda")
    into = torch.empty_like(data)
    until, rounds = time.monotonic() + WAIT_S, 0
    try:
        while time.monotonic() < until:
            comm.all_reduce(data, into)
            comm.wait()
            rounds += 1
            if rounds == 5:
                (folder / f"running.{comm.rank}").touch()
        error = None
    except NcclError as why:
        error = str(why)
    at_s = time.monotonic()
    comm.abort()
    return {"error": error, "rounds": rounds, "at_s": at_s, "abort_s": time.monotonic() - at_s}


def by_torch(rank, ranks, folder):
    import torch.distributed as dist
    dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", 0))
    total = torch.full((1000,), float(rank + 1), device="cuda")
    dist.all_reduce(total)
    assert bool((total == ranks * (ranks + 1) / 2).all()), "all_reduce"
    torch.manual_seed(rank)  # different weights on each rank, until rank 0's are broadcast
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(300, 300).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(16, 300, device="cuda")).square().mean().backward()
        optimizer.step()
    weights = [torch.empty_like(model.module.weight) for _ in range(ranks)]
    dist.all_gather(weights, model.module.weight.detach())
    assert all(torch.equal(weights[0], each) for each in weights), "the replicas of a model differ"
    dist.barrier()
    dist.destroy_process_group()
    return {"checks": 2}


def main():
    rank, ranks, folder, task = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
    seed = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    faulthandler.dump_traceback_later(WAIT_S + 5, repeat=True)  # shows where a rank hangs in a call
    torch.cuda.set_device(0)
    torch.zeros(1, device="cuda")
    if task == "torch":
        print(json.dumps(by_torch(rank, ranks, folder)))
        return
    nccl = Nccl()
    comm = Communicator.of_all(nccl, rank, ranks, folder)
    if task == "check":
        seen = check(comm, seed, (1, 1000, 65537, 1 << 20), tuple(DTYPES))
    elif task == "check_few":
        seen = check(comm, seed, (1000, 300007), (torch.float32, torch.bfloat16))
    elif task == "speed":
        seen = speed(comm)
    else:
        seen = until_error(comm, folder)
    print(json.dumps(seen | {"nccl": nccl.version(), "card": torch.cuda.get_device_name(0), "torch": torch.__version__}))


if __name__ == "__main__":
    status = 1
    try:
        main()
        status = 0
    except Exception:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(status)  # a normal exit would wait for kernels, which wait for ranks that are gone
