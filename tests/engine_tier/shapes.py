"""What JSON documents and streams have in common with others of their kind: their keys, and the order of events."""

import json


def keys(value):
    """The names in a document, to any depth; what stands there counts as one leaf, null too."""
    if isinstance(value, dict):
        return {name: keys(part) for name, part in sorted(value.items())}
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return sorted({json.dumps(keys(part)) for part in value})
    return "value"


def order(stream):
    """The events of a stream, with repetitions left out."""
    shapes = [_shape(event) for event in stream.split("\n\n") if event]
    return [shape for place, shape in enumerate(shapes) if place == 0 or shapes[place - 1] != shape]


def _shape(event):
    name, data = "", event
    if event.startswith("event: "):
        name, _, data = event.partition("\n")
    text = data.removeprefix("data: ")
    return (name, keys(json.loads(text)) if text.startswith("{") else text)


def families(page):
    """Metric families with their types and the names of their labels."""
    found = {line.split()[2]: line.split()[3] for line in page.splitlines() if line.startswith("# TYPE vllm:")}
    labels: dict[str, set[str]] = {}
    for line in page.splitlines():
        if line.startswith("vllm:") and "{" in line:
            name, _, rest = line.partition("{")
            stated = {part.partition("=")[0] for part in rest.rpartition("}")[0].split('",') if part}
            labels.setdefault(name, set()).update(stated)
    return found, labels
