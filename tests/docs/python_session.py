"""Runs blocks of Python one after the other in one program, as `python3 -m asyncio` does with what is pasted into it.

  python_session.py ASKED ANSWERED      two fifos: a file with a block comes by the first, 0 or 1 goes into the second
"""
import ast
import asyncio
import inspect
import sys
import traceback
import types

asked, answered = sys.argv[1:]
names = {"__name__": "__main__", "asyncio": asyncio}
loop = asyncio.new_event_loop()
while True:
    with open(asked, encoding="utf-8") as file:
        path = file.read().strip()
    status = "0"
    try:
        with open(path, encoding="utf-8") as file:
            code = compile(file.read(), path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        done = types.FunctionType(code, names)()
        if inspect.iscoroutine(done):
            loop.run_until_complete(done)
    except BaseException:  # what a block raises is its page's failure, whatever it is
        traceback.print_exc()
        status = "1"
    sys.stdout.flush()
    with open(answered, "w", encoding="utf-8") as file:
        file.write(status + "\n")
