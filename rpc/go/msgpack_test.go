package rpc

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
)

type item struct {
	Name  string
	Count uint32
}

func TestValuesTravelAsTheTableSays(t *testing.T) {
	count := int8(-3)
	rows := []struct {
		value any
		bytes string
	}{
		{nil, "\xc0"}, {true, "\xc3"}, {false, "\xc2"},
		{0, "\x00"}, {127, "\x7f"}, {128, "\xcc\x80"}, {256, "\xcd\x01\x00"}, {1 << 16, "\xce\x00\x01\x00\x00"},
		{uint64(math.MaxUint64), "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"},
		{-1, "\xff"}, {-32, "\xe0"}, {-33, "\xd0\xdf"}, {-129, "\xd1\xff\x7f"}, {math.MinInt64, "\xd3\x80\x00\x00\x00\x00\x00\x00\x00"},
		{float32(0.5), "\xca\x3f\x00\x00\x00"}, {1.0, "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"},
		{"ab", "\xa2ab"}, {strings.Repeat("x", 32), "\xd9\x20" + strings.Repeat("x", 32)},
		{[]byte{1, 2}, "\xc4\x02\x01\x02"}, {[]int{1, 2}, "\x92\x01\x02"}, {[2]bool{true}, "\x92\xc3\xc2"},
		{map[string]int{"a": 1}, "\x81\xa1a\x01"}, {item{"nut", 2}, "\x92\xa3nut\x02"}, {struct{}{}, "\xc0"},
		{&count, "\xfd"}, {(*item)(nil), "\xc0"}, {Variant{1, "x"}, "\x92\x01\xa1x"},
	}
	for _, row := range rows {
		made, err := Marshal(row.value)
		if err != nil || string(made) != row.bytes {
			t.Errorf("%v: %x, %v; expected %x", row.value, made, err, row.bytes)
		}
		if row.value == nil {
			continue
		}
		back := reflect.New(reflect.TypeOf(row.value))
		if err := Unmarshal(made, back.Interface()); err != nil {
			t.Errorf("%v: %v", row.value, err)
		} else if again, _ := Marshal(back.Elem().Interface()); !bytes.Equal(again, made) {
			t.Errorf("%v came back as %v", row.value, back.Elem())
		}
	}
}

func TestStructsMayGrow(t *testing.T) {
	got := item{Count: 7}
	if err := Unmarshal([]byte("\x91\xa3nut"), &got); err != nil || got != (item{"nut", 7}) {
		t.Errorf("%v, %v", got, err)
	}
	if err := Unmarshal([]byte("\x94\xa3nut\x02\x92\x01\xa1x\x81\x01\xc4\x01z"), &got); err != nil || got != (item{"nut", 2}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	refuse := func(data string, into any) {
		t.Helper()
		if err := Unmarshal([]byte(data), into); err == nil {
			t.Errorf("%x was taken", data)
		}
	}
	refuse("\xcc\xff", new(int8))
	refuse("\xff", new(uint8))
	refuse("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", new(int64))
	refuse("\xa1x", new(bool))
	refuse("\x01", new(string))
	refuse("\xa5ab", new(string))
	refuse("\xdb\xff\xff\xff\xff", new(string))
	refuse("\xdd\xff\xff\xff\xff\x01", new([]int))
	refuse("\x01\x02", new(int))
	refuse("", new(int))
	refuse("\xc1", new(any))
	refuse("\x81\x90\x01", new(any))
	refuse(strings.Repeat("\x91", 100)+"\x01", new(any))
	refuse("\x93\xa1x\x01"+strings.Repeat("\x91", 100)+"\x01", new(item))
}
