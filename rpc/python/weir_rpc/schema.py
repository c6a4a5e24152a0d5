"""What a server tells of a function's types, walked beside values: names of aggregates are checked on the way in, and put
to them on the way out. The grammar is that of rpc/codec/schema.hpp.

A schema that does not parse, or a value that is not of its type, is left as it is: the server says what is wrong with it.
"""
import dataclasses
from typing import Any, Dict, List, Optional, Tuple

_DEEPEST = 64


class Record(list):
    """An aggregate: the list of its fields, which are attributes, too."""

    def __init__(self, values, names: Tuple[str, ...]) -> None:
        super().__init__(values)
        self.__dict__.update(zip(names, self))  # also a field named as a method of lists: count, index

    def asdict(self) -> Dict[str, Any]:
        return dict(self.__dict__)


class Enumerator(int):
    """A value of an enum: the number that it is, and its name."""

    def __new__(cls, value: int, name: str) -> "Enumerator":
        made = super().__new__(cls, value)
        made.name = name
        return made

    def __repr__(self) -> str:
        return f"<{self.name}: {int(self)}>"


class _Unknown(Exception):
    """The schema is not of this grammar."""


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self.aggregates: Dict[str, List[Tuple[str, Any]]] = {}

    def _skip(self) -> None:
        while self._text[self._at:self._at + 1] == " ":
            self._at += 1

    def take(self, word: str) -> bool:
        self._skip()
        if not self._text.startswith(word, self._at):
            return False
        self._at += len(word)
        return True

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise _Unknown

    def word(self) -> str:
        self._skip()
        begin = self._at
        while self._at < len(self._text) and (self._text[self._at].isalnum() or self._text[self._at] == "_"):
            self._at += 1
        if begin == self._at:
            raise _Unknown
        return self._text[begin:self._at]

    def many(self, between: str, close: str) -> List[Any]:
        found: List[Any] = []
        while not self.take(close):
            if found:
                self.expect(between)
            self.take("optional ")  # may be left out
            found.append(self.type())
        return found

    def type(self) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Unknown
        try:
            return self._type()
        finally:
            self._depth -= 1

    def _type(self) -> Any:
        if self.take("?"):
            return "optional", self.type()
        if self.take("["):
            element = self.type()
            self.expect("]")
            return "list", element
        if self.take("("):
            return "tuple", self.many(",", ")")
        if self.take("<"):
            return "variant", self.many("|", ">")
        if self.take("{"):
            key = self.type()
            self.expect(":")
            mapped = self.type()
            self.expect("}")
            return "map", key, mapped
        name = self.word()
        if self._text[self._at:self._at + 1] == "[":  # a unit, as in i64[ms]
            self._at = self._text.index("]", self._at) + 1
            return "named", name
        if self._text[self._at:self._at + 1] == "<":
            self._at += 1
            return "enum", self._enumerators()
        if self._text[self._at:self._at + 1] != "{":
            return "named", name
        self._at += 1
        fields = self.aggregates[name] = []
        while not self.take("}"):
            if fields:
                self.expect(",")
            field = self.word()
            self.expect(":")
            fields.append((field, self.type()))
        return "named", name


    def _enumerators(self) -> Dict[str, int]:
        names: Dict[str, int] = {}
        while not self.take(">"):
            if names:
                self.expect(",")
            name = self.word()
            self.expect("=")
            sign = -1 if self.take("-") else 1
            names[name] = sign * int(self.word())
        return names


class Function:
    """Of a function that is no stream."""

    def __init__(self, types: str) -> None:
        self._known = False
        parser = _Parser(types)
        try:
            parser.expect("(")
            self._arguments = parser.many(",", ")")
            parser.expect("->")
            self._result = parser.type()
            self._known = True
        except (_Unknown, ValueError):
            pass
        self._aggregates = parser.aggregates

    def check(self, arguments: Tuple) -> Tuple:
        """The arguments as they are sent, with numbers for the names of enums. Raises TypeError where an aggregate is given a
        field, or an enum a name, that it has not."""
        if not self._known:
            return arguments
        for value, kind in zip(arguments, self._arguments):
            self._check(value, kind)
        return tuple(self._numbered(value, kind) for value, kind in zip(arguments, self._arguments)) \
            + tuple(arguments[len(self._arguments):])

    def named(self, result: Any) -> Any:
        return self._named(result, self._result) if self._known else result

    def _fields(self, kind: Any) -> Optional[List[Tuple[str, Any]]]:
        return self._aggregates.get(kind[1]) if kind[0] == "named" else None

    def _numbered(self, value: Any, kind: Any) -> Any:
        fields = self._fields(kind)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if kind[0] == "enum" and isinstance(value, str):
            return kind[1][value]
        if fields is not None and isinstance(value, dict):
            types = dict(fields)
            return {name: self._numbered(inner, types[name]) for name, inner in value.items()}
        if kind[0] == "optional" and value is not None:
            return self._numbered(value, kind[1])
        if fields is not None and isinstance(value, (list, tuple)):
            return [self._numbered(inner, field) for inner, (_, field) in zip(value, fields)] + list(value[len(fields):])
        if kind[0] == "list" and isinstance(value, (list, tuple)):
            return [self._numbered(inner, kind[1]) for inner in value]
        if kind[0] == "tuple" and isinstance(value, (list, tuple)):
            return [self._numbered(inner, each) for inner, each in zip(value, kind[1])] + list(value[len(kind[1]):])
        if kind[0] == "map" and isinstance(value, dict):
            return {self._numbered(key, kind[1]): self._numbered(inner, kind[2]) for key, inner in value.items()}
        if kind[0] == "variant" and isinstance(value, (list, tuple)) and len(value) == 2:
            if isinstance(value[0], int) and 0 <= value[0] < len(kind[1]):
                return [value[0], self._numbered(value[1], kind[1][value[0]])]
        return value

    def _check(self, value: Any, kind: Any) -> None:
        if kind[0] == "enum" and isinstance(value, str) and value not in kind[1]:
            raise TypeError(f"there is no {value!r} among {', '.join(kind[1])}")
        fields = self._fields(kind)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if fields is not None and isinstance(value, dict):
            types = dict(fields)
            for name, inner in value.items():
                if name not in types:
                    raise TypeError(f"{kind[1]} has no field {name!r}; it has {', '.join(types)}")
                self._check(inner, types[name])
        elif fields is not None and isinstance(value, (list, tuple)):
            for inner, (_, field) in zip(value, fields):
                self._check(inner, field)
        elif kind[0] == "optional" and value is not None:
            self._check(value, kind[1])
        elif kind[0] == "list" and isinstance(value, (list, tuple)):
            for inner in value:
                self._check(inner, kind[1])
        elif kind[0] == "tuple" and isinstance(value, (list, tuple)):
            for inner, each in zip(value, kind[1]):
                self._check(inner, each)
        elif kind[0] == "map" and isinstance(value, dict):
            for inner in value.values():
                self._check(inner, kind[2])
        elif kind[0] == "variant" and isinstance(value, (list, tuple)) and len(value) == 2:
            if isinstance(value[0], int) and 0 <= value[0] < len(kind[1]):
                self._check(value[1], kind[1][value[0]])

    def _named(self, value: Any, kind: Any) -> Any:
        fields = self._fields(kind)
        if fields is not None and isinstance(value, list):
            inner = [self._named(each, field[1]) for each, field in zip(value, fields)]
            return Record(inner + value[len(fields):], tuple(name for name, _ in fields))
        if kind[0] == "enum" and isinstance(value, int):
            return next((Enumerator(value, name) for name, number in kind[1].items() if number == value), value)
        if kind[0] == "optional" and value is not None:
            return self._named(value, kind[1])
        if kind[0] == "list" and isinstance(value, list):
            return [self._named(each, kind[1]) for each in value]
        if kind[0] == "tuple" and isinstance(value, list):
            return [self._named(each, inner) for each, inner in zip(value, kind[1])] + value[len(kind[1]):]
        if kind[0] == "map" and isinstance(value, dict):
            return {key: self._named(each, kind[2]) for key, each in value.items()}
        if kind[0] == "variant" and isinstance(value, list) and len(value) == 2:
            if isinstance(value[0], int) and 0 <= value[0] < len(kind[1]):
                return [value[0], self._named(value[1], kind[1][value[0]])]
        return value
