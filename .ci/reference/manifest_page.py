"""docs/reference/manifest.md and its JSON Schema: every field of both kinds of manifest."""

import json
import types
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from layout import attribute_texts, code, codes, page, plain, table
from manifest_meanings import MEANINGS
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from fleet import manifest, spec
from fleet.manifest import AnyManifest, Manifest, PinnedManifest
from fleet.value import Value

NAMED = {"Name": "a DNS label", "LabelKey": "label key", "LabelValue": "label value", "ImageDigest": "image by digest"}
UNION = (Union, types.UnionType)

INTRODUCTION = """
A manifest is one YAML document. There are two kinds: `InferenceDeployment`, which people write, and
`PinnedInferenceDeployment`, which `enginehouse pin --write` makes from it. Their `spec` has the same fields; a pinned
one leaves none of the four parts open (model, engine, batch, hardware).

- An unknown field is an error that names the nearest known one. Aliases (`*name`), duplicate keys, and files above
  1,000,000 bytes or 40 levels are refused.
- **JSON Schema** for editors: [manifest.schema.json](manifest.schema.json). The program checks more than a schema can
  say, so `enginehouse review` has the last word.
- `gpus` are the GPUs of one replica: tensor x pipeline x data x context. `expert` never multiplies.
- Secrets never stand in a manifest; a key is named by reference.

```yaml
apiVersion: enginehouse.dev/v1
kind: InferenceDeployment
metadata: {name: support-chat, labels: {team: support}}
spec:
  workload: chat
  model: {id: Qwen/Qwen3-32B, revision: 9216db5781bf21249d130ec9da846c4624c16137, quantization: fp8}
  batch: {max_model_len: 32768}
  hardware: {instance_type: p5.48xlarge, gpus: 2}
  parallelism: {tensor: 2}
  access: {tenants: [acme, globex]}
```
"""
IDENTITY = """
## Identity
The identity of a pinned manifest is the first 32 hex digits of sha256 over the canonical JSON of `model` (id, revision,
quantization), `engine` or `hosted`, `batch`, `hardware`, `parallelism`, `pools` and `features`. Outside it:
`served_name`, `alternatives`, `scaling`, `access`, `objectives`, `canary`, and the `metadata`.
See [how identity works](../explanation/identity.md).
"""


def render() -> str:
    """The page."""
    sections = "\n\n".join(_section(model) for model in _models())
    return page("Manifest", "`fleet.manifest` and `fleet.spec`", INTRODUCTION, sections, IDENTITY)


def schema() -> str:
    """The JSON Schema of both kinds."""
    document = TypeAdapter(AnyManifest).json_schema()
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Enginehouse manifest"}
    return json.dumps(head | document, indent=2, ensure_ascii=True) + "\n"


def _models() -> tuple[type[Value], ...]:
    """Every model below a manifest, in the order in which a reader meets them."""
    found: dict[type[Value], None] = {}

    def visit(model: type[Value]) -> None:
        if model in found:
            return
        found[model] = None
        for field in model.model_fields.values():
            for below in _values_in(field.annotation):
                visit(below)

    visit(Manifest)
    visit(PinnedManifest)
    return tuple(found)


def _values_in(annotation: object) -> Iterator[type[Value]]:
    if isinstance(annotation, type) and issubclass(annotation, Value):
        yield annotation
    for part in get_args(annotation):
        yield from _values_in(part)


def _section(model: type[Value]) -> str:
    texts = attribute_texts(manifest) | attribute_texts(spec)
    rows = [
        (code(name), _type(field.rebuild_annotation()), _default(field), _meaning(model, name, texts))
        for name, field in model.model_fields.items()
    ]
    text = plain((model.__doc__ or "").split("\n\n")[0]).replace("`None`", "Left out")
    return f"## {model.__name__}\n{text}\n\n" + table(("field", "type", "default", "meaning"), rows)


def _meaning(model: type[Value], name: str, texts: dict[str, str]) -> str:
    key = f"{model.__name__}.{name}"
    found = [text for text in (texts.get(key), MEANINGS.get(key)) if text]
    if not found:
        raise LookupError(f"nothing says what {key} means; give it a docstring, or a line in manifest_meanings")
    return " ".join(found).replace("`None`", "left out")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "open"
    if isinstance(value, Value):
        return "its defaults"
    if isinstance(value, Enum):
        return code(value.value)
    if isinstance(value, bool):
        return code(str(value).lower())
    return code(list(value)) if isinstance(value, tuple) else code(value)


def _type(annotation: Any) -> str:  # noqa: ANN401 - any annotation of a model
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(annotation, parts)
    if origin in UNION:
        return " or ".join(dict.fromkeys(_type(part) for part in parts if part is not type(None)))
    if origin is Literal:
        return codes(parts)
    if origin is tuple:
        return f"list of {_type(parts[0])}"
    if origin is dict:
        return f"mapping of {_type(parts[0])} to {_type(parts[1])}"
    return _plain_type(annotation)


def _plain_type(kind: type) -> str:
    if issubclass(kind, Enum):
        return codes(item.value for item in kind)
    if issubclass(kind, Value):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    words = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}
    return words[kind]


def _annotated(annotation: object, parts: tuple[Any, ...]) -> str:
    named = next((word for name, word in NAMED.items() if getattr(spec, name) == annotation), None)
    if named is not None:
        return named
    base = _type(parts[0])
    limits = [text for part in parts[1:] for text in _limits(part)]
    return f"{base} {' and '.join(limits)}" if limits else base


def _limits(part: object) -> Iterator[str]:
    for item in (part, *getattr(part, "metadata", ())):
        for name, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<")):
            limit = getattr(item, name, None)
            if limit is not None:
                yield f"{sign} {limit:g}"
