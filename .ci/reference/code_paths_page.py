"""docs/reference/code-paths.md: the words, what they mean, and what opens each path of each engine."""

from collections import Counter
from collections.abc import Iterator

from layout import code, codes, page, table

from engines.catalogue import Catalogue, load
from engines.tables import PathRule
from fleet.codepath import ALWAYS_EXPOSED, KNOWN_PATHS
from fleet.spec import EngineName
from sources import snapshot
from sources.companions import LABEL_CODES

MEANINGS = {
    "core": "the engine's core, or a record that does not say where the defect is",
    "api": "the HTTP server: limits, authentication, parameters",
    "model-load": "loading weights and configuration: formats, revisions, remote code",
    "multimodal": "preprocessing of images, audio and video",
    "media-ssrf": "fetching media or batch files by URL",
    "disaggregation": "prefill apart from decode, transfer and offload of the KV cache",
    "multi-node": "messages between workers and nodes",
    "structured-output": "grammars and schemas that answers follow",
    "tool-parser": "parsers of tool calls and their schemas",
    "chat-template": "rendering chat templates, for reranking and scoring too",
    "prompt-embeds": "embeddings that a request brings along",
    "weight-endpoints": "endpoints that replace weights or run custom processors",
    "lora": "adapters",
    "speculative": "drafting of tokens",
    "cache": "the prefix cache that requests share",
    "grpc": "gRPC front ends",
    "debug": "dumping and replay tools",
    "batch-runner": "the runner of batch files",
    "image-build": "building the image: build files and CI",
}
INTRODUCTION = """
A code path is the part of an engine that a defect needs. A record may carry labels: the paths that a person confirmed
for it. A manifest has an exposure: the paths that its model, flags and features switch on. A record steps back for a
manifest only if **all** its confirmed labels lie outside the exposure. A record without a label counts for every path,
and malware always counts.

The set is open: a label may use a word that is not here, and is then compared like any other. How it is used:
[exposure](../explanation/exposure.md).
"""
CODES = """
## Labels
`labels.json` beside records holds `package/ID` and codes, the main path first. A code that is not in the table is the
word itself.
"""
OPENS = """
## What opens a path
Read from the catalogue, per engine. What can't be told to be off is on: for a version older than the oldest flag list,
every path counts as exposed.
"""


def render() -> str:
    """The page."""
    code_of = {word: short for short, word in LABEL_CODES.items()}
    labelled = _labelled()
    rows = [
        (code(path), MEANINGS[path], code(code_of.get(path, path)), _always(path), labelled[path])
        for path in KNOWN_PATHS
    ]
    head = ("path", "what it is", "code in labels.json", "can be off", "labelled advisories in the snapshot")
    catalogue = load()
    return page(
        "Code paths",
        "`fleet.codepath`, `sources.companions` and the engine catalogue",
        INTRODUCTION,
        table(head, rows),
        CODES,
        table(("code", "path"), ((code(short), code(word)) for short, word in LABEL_CODES.items())),
        OPENS,
        *(_engine(catalogue, name) for name in catalogue.names),
    )


def _labelled() -> Counter[str]:
    data = snapshot.bundled()
    paths = (path for item in data.advisories for package in item.packages for path in item.paths(package))
    return Counter(paths)


def _always(path: str) -> str:
    return "no" if path in ALWAYS_EXPOSED else "yes"


def _engine(catalogue: Catalogue, name: EngineName) -> str:
    rules = {rule.path: rule for rule in catalogue.tables[name].exposure}
    rows = [(code(path), _opened(rules[path]), rules[path].reason) for path in KNOWN_PATHS if path in rules]
    silent = [path for path in KNOWN_PATHS if path not in rules and path not in ALWAYS_EXPOSED]
    rest = f"\n\nNothing opens: {codes(silent)}." if silent else ""
    return f"### {name}\n" + table(("path", "opened by", "why"), rows) + rest


def _opened(rule: PathRule) -> str:
    return "; ".join(_words(rule))


def _words(rule: PathRule) -> Iterator[str]:
    if rule.always:
        yield "always"
    if rule.any:
        yield codes(rule.any)
    if rule.flags:
        yield "flags " + codes(rule.flags)
    if rule.off:
        yield "unless " + codes(f"{flag}={value}" for flag, value in rule.off.items())
