// Asks a Redis server for 5,000 increments of one key on one connection, and compares the answers.
// usage: redis_pings HOST:PORT
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
)

func main() {
	connection, err := net.Dial("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	answers := bufio.NewReader(connection)
	const turns = 5000
	for turn := 1; turn <= turns; turn++ {
		fmt.Fprint(connection, "INCR key\r\n")
		line, err := answers.ReadString('\n')
		if err != nil || line != fmt.Sprintf(":%d\r\n", turn) {
			panic(fmt.Sprint(turn, " ", line, err))
		}
	}
	fmt.Println(turns, "answers right")
}
