package rpc

import "errors"

// Code says what happened to a call (rpc/error.hpp).
type Code uint16

// The numbers up to 63 come from the server.
const (
	UnknownMethod    Code = 1
	BadArguments     Code = 2
	TooLarge         Code = 3
	DeadlineExceeded Code = 4
	Cancelled        Code = 5
	Overloaded       Code = 6
	Draining         Code = 7
	Failed           Code = 8
	Denied           Code = 9
	VersionMismatch  Code = 10
	WrongCodec       Code = 11
	Unauthenticated  Code = 12
	SchemaMismatch   Code = 13
	BadReply         Code = 64
	ConnectionLost   Code = 65
	Closed           Code = 66
	Protocol         Code = 67
	BadAddress       Code = 68
	Unreachable      Code = 69
	BadSetting       Code = 72
)

var names = map[Code]string{
	UnknownMethod: "unknown_method", BadArguments: "bad_arguments", TooLarge: "too_large",
	DeadlineExceeded: "deadline_exceeded", Cancelled: "cancelled", Overloaded: "overloaded", Draining: "draining",
	Failed: "failed", Denied: "denied", VersionMismatch: "version_mismatch", WrongCodec: "wrong_codec",
	Unauthenticated: "unauthenticated", SchemaMismatch: "schema_mismatch", BadReply: "bad_reply",
	ConnectionLost: "connection_lost", Closed: "closed", Protocol: "protocol", BadAddress: "bad_address",
	Unreachable: "unreachable", BadSetting: "bad_setting",
}

func (c Code) String() string {
	if name, known := names[c]; known {
		return name
	}
	return "unknown"
}

// DidNotRun: the function certainly did not run, so that calling again cannot run it twice.
func (c Code) DidNotRun() bool {
	switch c {
	case UnknownMethod, BadArguments, Overloaded, Draining, Denied, VersionMismatch, WrongCodec, Unauthenticated,
		SchemaMismatch, BadAddress, Unreachable, BadSetting:
		return true
	}
	return false
}

// Error is why a call failed: what happened, and in words why and what to do.
type Error struct {
	Code Code
	What string
}

func (e *Error) Error() string { return e.Code.String() + ": " + e.What }

// CodeOf returns the code of a call's error; 0 if it has none.
func CodeOf(err error) Code {
	var of *Error
	if errors.As(err, &of) {
		return of.Code
	}
	return 0
}
