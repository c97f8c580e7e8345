"""Protobuf messages from a few lines that name their fields: those that are used, with the numbers of the standard.

Fields that are not named are skipped when a message is read, as protobuf does with fields that it does not know.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2
from google.protobuf.message import Message

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "double": _Field.TYPE_DOUBLE,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}


def message_types(package: str, text: str) -> dict[str, type[Message]]:
    """The classes by name.

    A line ``message NAME`` starts one; each line after it is a field: type, name, number, and the oneof it is in if
    any. ``TYPE[]`` is repeated, ``TYPE{}`` a map from text, ``Struct`` protobuf's own; an enum is read as ``int32``.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    file.dependency.append("google/protobuf/struct.proto")
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["message"]:
            file.message_type.add(name=words[1])
        elif words:
            _add_field(file, words)
    pool: Any = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    names = [message.name for message in file.message_type]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in names}


def _add_field(file: descriptor_pb2.FileDescriptorProto, words: list[str]) -> None:
    message = file.message_type[-1]
    type_name, name, number = words[0], words[1], int(words[2])
    bare = type_name.rstrip("[]{}")
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if bare != type_name:
        field.label = _Field.LABEL_REPEATED
    if type_name.endswith("{}"):
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _set_type(file, entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL), "string")
        _set_type(file, entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL), bare)
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{file.package}.{message.name}.{entry.name}"
        return
    _set_type(file, field, bare)
    if len(words) > 3:
        field.oneof_index = _oneof(message, words[3])


def _set_type(file: descriptor_pb2.FileDescriptorProto, field: descriptor_pb2.FieldDescriptorProto, name: str) -> None:
    scalar = _SCALARS.get(name)
    if scalar is not None:
        field.type = scalar
        return
    field.type = _Field.TYPE_MESSAGE
    field.type_name = ".google.protobuf.Struct" if name == "Struct" else f".{file.package}.{name}"


def _oneof(message: descriptor_pb2.DescriptorProto, name: str) -> int:
    names = [oneof.name for oneof in message.oneof_decl]
    if name not in names:
        message.oneof_decl.add(name=name)
        return len(names)
    return names.index(name)
