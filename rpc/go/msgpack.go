package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// Values as MessagePack and back, by the table in rpc/codec/codec.hpp: a struct is the array of its exported
// fields, a pointer is nil or its value, []byte is binary. A struct may grow at its end: fields that are
// missing stay as they are, further ones are skipped.

const (
	deepest = 64
	oneByte = 1 << 8
)

// Variant is a value of one of several types: which of them, and the value.
type Variant struct {
	Index uint64
	Value any
}

var errShort = errors.New("the value is cut off")

// Marshal encodes a value.
func Marshal(value any) ([]byte, error) { return encode(nil, reflect.ValueOf(value), 0) }

// Unmarshal decodes one value into what `into` points to.
func Unmarshal(data []byte, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return errors.New("a result goes into what a pointer points to")
	}
	rest, err := decode(data, target.Elem(), 0)
	if err == nil && len(rest) != 0 {
		return errors.New("there is more than one value")
	}
	return err
}

// Of a length: in the first byte where it fits `small`, otherwise behind one of the codes (0: there is none of
// that size).
func appendLength(to []byte, length int, first byte, small int, codes [3]byte) []byte {
	switch {
	case length < small:
		return append(to, first|byte(length))
	case length < oneByte && codes[0] != 0:
		return append(to, codes[0], byte(length))
	case length <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(to, codes[1]), uint16(length))
	default:
		return binary.BigEndian.AppendUint32(append(to, codes[2]), uint32(length))
	}
}

func appendUnsigned(to []byte, value uint64) []byte {
	switch {
	case value < 128:
		return append(to, byte(value))
	case value <= math.MaxUint8:
		return append(to, 0xcc, byte(value))
	case value <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(to, 0xcd), uint16(value))
	case value <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(to, 0xce), uint32(value))
	default:
		return binary.BigEndian.AppendUint64(append(to, 0xcf), value)
	}
}

func appendSigned(to []byte, value int64) []byte {
	switch {
	case value >= 0:
		return appendUnsigned(to, uint64(value))
	case value >= -32:
		return append(to, byte(value))
	case value >= math.MinInt8:
		return append(to, 0xd0, byte(value))
	case value >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(to, 0xd1), uint16(value))
	case value >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(to, 0xd2), uint32(value))
	default:
		return binary.BigEndian.AppendUint64(append(to, 0xd3), uint64(value))
	}
}

func encode(to []byte, value reflect.Value, depth int) ([]byte, error) {
	if depth > deepest {
		return nil, errors.New("the value nests too deeply")
	}
	if !value.IsValid() {
		return append(to, 0xc0), nil
	}
	switch value.Kind() {
	case reflect.Bool:
		if value.Bool() {
			return append(to, 0xc3), nil
		}
		return append(to, 0xc2), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return appendSigned(to, value.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return appendUnsigned(to, value.Uint()), nil
	case reflect.Float32:
		return binary.BigEndian.AppendUint32(append(to, 0xca), math.Float32bits(float32(value.Float()))), nil
	case reflect.Float64:
		return binary.BigEndian.AppendUint64(append(to, 0xcb), math.Float64bits(value.Float())), nil
	case reflect.String:
		return append(appendLength(to, value.Len(), 0xa0, 32, [3]byte{0xd9, 0xda, 0xdb}), value.String()...), nil
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return append(to, 0xc0), nil
		}
		return encode(to, value.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		return encodeList(to, value, depth)
	case reflect.Map:
		to = appendLength(to, value.Len(), 0x80, 16, [3]byte{0, 0xde, 0xdf})
		var err error
		for entries := value.MapRange(); entries.Next(); {
			if to, err = encode(to, entries.Key(), depth+1); err != nil {
				return nil, err
			}
			if to, err = encode(to, entries.Value(), depth+1); err != nil {
				return nil, err
			}
		}
		return to, nil
	case reflect.Struct:
		return encodeStruct(to, value, depth)
	}
	return nil, fmt.Errorf("a %s cannot travel", value.Type())
}

func encodeList(to []byte, value reflect.Value, depth int) ([]byte, error) {
	if value.Type().Elem().Kind() == reflect.Uint8 {
		to = appendLength(to, value.Len(), 0, 0, [3]byte{0xc4, 0xc5, 0xc6})
		for i := 0; i < value.Len(); i++ {
			to = append(to, byte(value.Index(i).Uint()))
		}
		return to, nil
	}
	to = appendLength(to, value.Len(), 0x90, 16, [3]byte{0, 0xdc, 0xdd})
	var err error
	for i := 0; i < value.Len(); i++ {
		if to, err = encode(to, value.Index(i), depth+1); err != nil {
			return nil, err
		}
	}
	return to, nil
}

func encodeStruct(to []byte, value reflect.Value, depth int) ([]byte, error) {
	fields := exported(value.Type())
	if len(fields) == 0 {
		return append(to, 0xc0), nil
	}
	to = appendLength(to, len(fields), 0x90, 16, [3]byte{0, 0xdc, 0xdd})
	var err error
	for _, field := range fields {
		if to, err = encode(to, value.Field(field), depth+1); err != nil {
			return nil, err
		}
	}
	return to, nil
}

func exported(of reflect.Type) []int {
	var fields []int
	for i := 0; i < of.NumField(); i++ {
		if of.Field(i).IsExported() {
			fields = append(fields, i)
		}
	}
	return fields
}

// What comes next: its kind, for numbers its value, for all else how many bytes or elements follow.
type token struct {
	kind   byte // 'n'il, 'b'ool, 'u'nsigned, 'i'nteger below 0, 'f'loat, 's'tring, bi'x'nary, 'a'rray, 'm'ap
	number uint64
	real   float64
}

// The kinds from 0xc4 on, and how many bytes their number has.
var kinds = map[byte]struct {
	kind byte
	size int
}{
	0xc4: {'x', 1}, 0xc5: {'x', 2}, 0xc6: {'x', 4}, 0xca: {'f', 4}, 0xcb: {'f', 8},
	0xcc: {'u', 1}, 0xcd: {'u', 2}, 0xce: {'u', 4}, 0xcf: {'u', 8},
	0xd0: {'i', 1}, 0xd1: {'i', 2}, 0xd2: {'i', 4}, 0xd3: {'i', 8},
	0xd9: {'s', 1}, 0xda: {'s', 2}, 0xdb: {'s', 4}, 0xdc: {'a', 2}, 0xdd: {'a', 4}, 0xde: {'m', 2}, 0xdf: {'m', 4},
}

func next(data []byte) (token, []byte, error) {
	if len(data) == 0 {
		return token{}, nil, errShort
	}
	first, data := data[0], data[1:]
	switch {
	case first < 0x80:
		return token{kind: 'u', number: uint64(first)}, data, nil
	case first < 0x90:
		return token{kind: 'm', number: uint64(first & 15)}, data, nil
	case first < 0xa0:
		return token{kind: 'a', number: uint64(first & 15)}, data, nil
	case first < 0xc0:
		return token{kind: 's', number: uint64(first & 31)}, data, nil
	case first >= 0xe0:
		return token{kind: 'i', number: uint64(int64(int8(first)))}, data, nil
	case first == 0xc0:
		return token{kind: 'n'}, data, nil
	case first == 0xc2 || first == 0xc3:
		return token{kind: 'b', number: uint64(first & 1)}, data, nil
	}
	of, known := kinds[first]
	if !known {
		return token{}, nil, fmt.Errorf("0x%02x begins no value", first)
	}
	if len(data) < of.size {
		return token{}, nil, errShort
	}
	var number uint64
	for _, b := range data[:of.size] {
		number = number<<8 | uint64(b)
	}
	made := token{kind: of.kind, number: number}
	switch {
	case of.kind == 'f' && of.size == 4:
		made.real = float64(math.Float32frombits(uint32(number)))
	case of.kind == 'f':
		made.real = math.Float64frombits(number)
	case of.kind == 'i':
		shift := 64 - 8*of.size
		made.number = uint64(int64(number<<shift) >> shift)
		if int64(made.number) >= 0 {
			made.kind = 'u'
		}
	}
	return made, data[of.size:], nil
}

func skip(data []byte, depth int) ([]byte, error) {
	if depth > deepest {
		return nil, errTooDeep
	}
	of, data, err := next(data)
	if err != nil {
		return nil, err
	}
	switch of.kind {
	case 's', 'x':
		if of.number > uint64(len(data)) {
			return nil, errShort
		}
		return data[of.number:], nil
	case 'a', 'm':
		count := of.number
		if of.kind == 'm' {
			count *= 2
		}
		for ; count > 0; count-- {
			if data, err = skip(data, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return data, nil
}

func decode(data []byte, into reflect.Value, depth int) ([]byte, error) {
	if depth > deepest {
		return nil, errTooDeep
	}
	of, rest, err := next(data)
	if err != nil {
		return nil, err
	}
	wrong := func() ([]byte, error) { return nil, fmt.Errorf("the value is no %s", into.Type()) }
	if of.kind == 's' || of.kind == 'x' {
		if of.number > uint64(len(rest)) {
			return nil, errShort
		}
	}
	switch into.Kind() {
	case reflect.Pointer:
		if of.kind == 'n' {
			into.Set(reflect.Zero(into.Type()))
			return rest, nil
		}
		into.Set(reflect.New(into.Type().Elem()))
		return decode(data, into.Elem(), depth+1)
	case reflect.Interface:
		value, rest, err := decodeAny(data, depth)
		if err == nil && value != nil {
			into.Set(reflect.ValueOf(value))
		}
		return rest, err
	case reflect.Bool:
		if of.kind != 'b' {
			return wrong()
		}
		into.SetBool(of.number == 1)
		return rest, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		signed := int64(of.number)
		if (of.kind != 'u' && of.kind != 'i') || (of.kind == 'u' && signed < 0) || into.OverflowInt(signed) {
			return wrong()
		}
		into.SetInt(signed)
		return rest, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if of.kind != 'u' || into.OverflowUint(of.number) {
			return wrong()
		}
		into.SetUint(of.number)
		return rest, nil
	case reflect.Float32, reflect.Float64:
		switch of.kind {
		case 'f':
			into.SetFloat(of.real)
		case 'u':
			into.SetFloat(float64(of.number))
		case 'i':
			into.SetFloat(float64(int64(of.number)))
		default:
			return wrong()
		}
		return rest, nil
	case reflect.String:
		if of.kind != 's' {
			return wrong()
		}
		into.SetString(string(rest[:of.number]))
		return rest[of.number:], nil
	case reflect.Slice:
		if into.Type().Elem().Kind() == reflect.Uint8 {
			if of.kind != 'x' {
				return wrong()
			}
			into.SetBytes(append([]byte{}, rest[:of.number]...))
			return rest[of.number:], nil
		}
		if of.kind != 'a' {
			return wrong()
		}
		into.Set(reflect.MakeSlice(into.Type(), 0, 0))
		for count := of.number; count > 0; count-- {
			element := reflect.New(into.Type().Elem()).Elem()
			if rest, err = decode(rest, element, depth+1); err != nil {
				return nil, err
			}
			into.Set(reflect.Append(into, element))
		}
		return rest, nil
	case reflect.Array:
		if of.kind != 'a' || of.number != uint64(into.Len()) {
			return wrong()
		}
		for i := 0; i < into.Len(); i++ {
			if rest, err = decode(rest, into.Index(i), depth+1); err != nil {
				return nil, err
			}
		}
		return rest, nil
	case reflect.Map:
		if of.kind != 'm' {
			return wrong()
		}
		into.Set(reflect.MakeMap(into.Type()))
		for count := of.number; count > 0; count-- {
			key, value := reflect.New(into.Type().Key()).Elem(), reflect.New(into.Type().Elem()).Elem()
			if rest, err = decode(rest, key, depth+1); err != nil {
				return nil, err
			}
			if rest, err = decode(rest, value, depth+1); err != nil {
				return nil, err
			}
			into.SetMapIndex(key, value)
		}
		return rest, nil
	case reflect.Struct:
		return decodeStruct(of, rest, into, depth)
	}
	return wrong()
}

var errTooDeep = errors.New("the value nests too deeply")

func decodeStruct(of token, rest []byte, into reflect.Value, depth int) ([]byte, error) {
	fields := exported(into.Type())
	if of.kind == 'n' && len(fields) == 0 {
		return rest, nil
	}
	if of.kind != 'a' {
		return nil, fmt.Errorf("the value is no %s", into.Type())
	}
	var err error
	for i := uint64(0); i < of.number; i++ {
		if i < uint64(len(fields)) {
			rest, err = decode(rest, into.Field(fields[i]), depth+1)
		} else {
			rest, err = skip(rest, depth+1)
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// Without a type: numbers are uint64, int64 or float64, arrays []any, maps map[any]any with texts and numbers
// as keys.
func decodeAny(data []byte, depth int) (any, []byte, error) {
	if depth > deepest {
		return nil, nil, errTooDeep
	}
	of, rest, err := next(data)
	if err != nil {
		return nil, nil, err
	}
	if (of.kind == 's' || of.kind == 'x') && of.number > uint64(len(rest)) {
		return nil, nil, errShort
	}
	switch of.kind {
	case 'n':
		return nil, rest, nil
	case 'b':
		return of.number == 1, rest, nil
	case 'u':
		return of.number, rest, nil
	case 'i':
		return int64(of.number), rest, nil
	case 'f':
		return of.real, rest, nil
	case 's':
		return string(rest[:of.number]), rest[of.number:], nil
	case 'x':
		return append([]byte{}, rest[:of.number]...), rest[of.number:], nil
	case 'a':
		list := []any{}
		for count := of.number; count > 0; count-- {
			var one any
			if one, rest, err = decodeAny(rest, depth+1); err != nil {
				return nil, nil, err
			}
			list = append(list, one)
		}
		return list, rest, nil
	}
	entries := map[any]any{}
	for count := of.number; count > 0; count-- {
		var key, value any
		if key, rest, err = decodeAny(rest, depth+1); err != nil {
			return nil, nil, err
		}
		if value, rest, err = decodeAny(rest, depth+1); err != nil {
			return nil, nil, err
		}
		if key != nil && !reflect.TypeOf(key).Comparable() {
			return nil, nil, errors.New("a key of a map is no text and no number")
		}
		entries[key] = value
	}
	return entries, rest, nil
}
