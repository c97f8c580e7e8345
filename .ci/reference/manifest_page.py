"""docs/reference/manifest.md and its JSON Schema: every field of both kinds of manifest."""

import json

from field_words import FieldWords, models_below
from layout import attribute_texts, code, page, plain, table
from manifest_meanings import MEANINGS
from pydantic import TypeAdapter

from fleet import manifest, spec
from fleet.manifest import AnyManifest, Manifest, PinnedManifest
from fleet.value import Value

WORDS = FieldWords()

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
    sections = "\n\n".join(_section(model) for model in models_below(Manifest, PinnedManifest))
    return page("Manifest", "`fleet.manifest` and `fleet.spec`", INTRODUCTION, sections, IDENTITY)


def schema() -> str:
    """The JSON Schema of both kinds."""
    document = TypeAdapter(AnyManifest).json_schema()
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Enginehouse manifest"}
    return json.dumps(head | document, indent=2, ensure_ascii=True) + "\n"


def _section(model: type[Value]) -> str:
    texts = attribute_texts(manifest) | attribute_texts(spec)
    rows = [
        (code(name), WORDS.type_of(field), WORDS.default_of(field), _meaning(model, name, texts))
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
