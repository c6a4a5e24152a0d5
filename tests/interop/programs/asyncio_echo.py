#!/usr/bin/env python3
"""An echo server and 50 clients of it at once, each with 200 kB, by Python's asyncio: a program of plain sockets.

usage: asyncio_echo.py serve|call HOST PORT     the server runs until it is killed
"""
import asyncio
import random
import sys

CLIENTS, BYTES = 50, 200_000


async def echo(reader, writer):
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
    writer.close()


async def serve(host, port):
    async with await asyncio.start_server(echo, host, port) as server:
        await server.serve_forever()


async def call_once(host, port, seed):
    reader, writer = await asyncio.open_connection(host, port)
    sent = random.Random(seed).randbytes(BYTES)
    writer.write(sent)
    writer.write_eof()
    got = await reader.read()
    writer.close()
    return got == sent


async def call(host, port):
    echoed = await asyncio.gather(*(call_once(host, port, seed) for seed in range(CLIENTS)))
    print(f"all {CLIENTS} echoed" if all(echoed) else f"{sum(echoed)} of {CLIENTS} echoed", flush=True)


what, host, port = sys.argv[1:]
asyncio.run({"serve": serve, "call": call}[what](host, int(port)))
