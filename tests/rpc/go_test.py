#!/usr/bin/env python3
"""Go's client and its generated functions against rpc_shop; and Go's own tests of the codec.

usage: go_test.py RPC_SHOP RPC_GO
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

SHOP, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SKIPPED = 77
PROGRAM = """package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"program/shop"
	"weir/rpc"
)

func main() {
	client, err := rpc.Dial(os.Args[1], nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	forever := context.Background()
	fmt.Println(shop.ShopAdd(forever, client, -2, 300))
	found, err := shop.ShopStockFind(forever, client, "bolt")
	fmt.Println(*found, err)
	missing, err := shop.ShopStockFind(forever, client, "nothing")
	fmt.Println(missing, err)
	_, err = shop.ShopStockTake(forever, client, shop.Item{Name: "nut", Count: 100000})
	fmt.Println(err, rpc.CodeOf(err), rpc.CodeOf(err).DidNotRun())
	err = client.Call(forever, "shop.nothing", nil, nil)
	fmt.Println(rpc.CodeOf(err), rpc.CodeOf(err).DidNotRun())
	err = client.Call(forever, "shop.add", []any{"two", 3}, nil)
	fmt.Println(rpc.CodeOf(err))
	late, cancel := context.WithTimeout(forever, time.Millisecond)
	_, err = shop.ShopBrew(late, client, "tea")
	cancel()
	fmt.Println(rpc.CodeOf(err))
	var all sync.WaitGroup
	var wrong sync.Map
	for i := int32(0); i < 200; i++ {
		all.Add(1)
		go func(i int32) {
			defer all.Done()
			if sum, err := shop.ShopAdd(forever, client, i, i); sum != 2*i || err != nil {
				wrong.Store(i, err)
			}
		}(i)
	}
	all.Wait()
	wrong.Range(func(i, err any) bool { fmt.Println("wrong", i, err); return true })
	client.Close()
	_, err = shop.ShopAdd(forever, client, 1, 1)
	fmt.Println(rpc.CodeOf(err))
	_, err = rpc.Dial("rdma://127.0.0.1:1", nil)
	fmt.Println(rpc.CodeOf(err))
	_, err = rpc.Dial("tcp://127.0.0.1:1", nil)
	fmt.Println(rpc.CodeOf(err))
}
"""
PRINTED = """298 <nil>
{bolt 12} <nil>
<nil> <nil>
failed: there are not 100000 of nut failed false
unknown_method true
bad_arguments
deadline_exceeded
closed
bad_address
unreachable
"""


def go(folder, *words):
    environment = dict(os.environ, GOPROXY="off", GOFLAGS="-mod=mod", GOTOOLCHAIN="local", CGO_ENABLED="0")
    return subprocess.run(["go", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


class Shop:
    def __enter__(self):
        self.process = subprocess.Popen([SHOP, "serve", "tcp://127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=30)

    def methods(self):
        return urllib.request.urlopen("http" + self.address[3:], timeout=30).read().decode()


class Go(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copytree(SOURCE, self.folder / "rpc")

    def test_the_codec(self):
        done = go(self.folder / "rpc", "test", "./...")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_generated_functions_call_a_server(self):
        with Shop() as shop:
            (self.folder / "shop.json").write_text(shop.methods())
            generated = go(self.folder / "rpc", "run", "./cmd/weir-rpc-go", "-package", "shop", "../shop.json")
            self.assertEqual(generated.returncode, 0, generated.stderr)
            program = self.folder / "program"
            (program / "shop").mkdir(parents=True)
            (program / "shop" / "shop.go").write_text(generated.stdout)
            (program / "main.go").write_text(PROGRAM)
            (program / "go.mod").write_text("module program\n\ngo 1.19\n\nrequire weir/rpc v0.0.0\n\nreplace weir/rpc => ../rpc\n")
            ran = go(program, "run", ".", shop.address)
        self.assertEqual((ran.stdout, ran.returncode), (PRINTED, 0), ran.stderr)

    def test_a_list_that_is_none_is_refused(self):
        for text, says in (("{}", "not what weir rpc list"), ('[{"name": "f", "schema": "(i32 -> i32", "codec": "msgpack"}]', "missing"),
                           ('[{"name": "f", "schema": "(' + "[" * 100 + '", "codec": "msgpack"}]', "nests too deeply")):
            (self.folder / "list.json").write_text(text)
            done = go(self.folder / "rpc", "run", "./cmd/weir-rpc-go", "../list.json")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    if shutil.which("go") is None:
        print("Go is not installed (golang-go)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
