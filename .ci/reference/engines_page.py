"""docs/reference/engines.md: what the catalogue knows about each engine, and what it can't do."""

from layout import code, codes, page, table

from engines.catalogue import Catalogue, load
from engines.streaming import Streaming
from fleet.engine import EngineDescription, MetricsDialect
from fleet.pins import engine_pins
from fleet.spec import EngineName, Workload
from sources import policy_file, snapshot

INTRODUCTION = """
The engine catalogue says what each engine of each version can do. It is data in `engines/data/`, each file with its
source; a verdict never stands in code. `enginehouse engines list` and `enginehouse engines show NAME [VERSION]` print
it.

A version without a flag list of its own takes that of the nearest older known one, and says so.
"""
WORDS = """
Words such as `disaggregation:prefill-decode` are settings of [features and parallelism](manifest.md#features) in a
manifest. A feature that stands neither under "can" nor under "can't" needs nothing special of the version.
"""

STATED = "Where the version has the flag, so that an upgrade changes only what the manifest says."


def render() -> str:
    """The page."""
    catalogue = load()
    data = snapshot.bundled()
    dates = f"Versions: as the package index listed them on {data.published_retrieved}. Advisories: as of {data.as_of}."
    head = (
        "engine",
        "package of its advisories",
        "newest known version",
        "uploaded",
        "flag lists",
        "offered",
        "recommended by the snapshot",
    )
    hosted = [(code(name), catalogue.hosts[name].note) for name in catalogue.hosted_names]
    return page(
        "Engines",
        "the engine catalogue and the bundled snapshot",
        INTRODUCTION,
        dates,
        table(head, (_row(catalogue, name) for name in catalogue.names)),
        "Recommended = the newest published version that no record refuses on any path, under the policy of `prod`.",
        WORDS,
        *(_section(catalogue, name) for name in catalogue.names),
        "## Hosted engines\nAn endpoint and a key by reference; no pods, no version, no advisories.",
        table(("engine", "note"), hosted),
    )


def _row(catalogue: Catalogue, name: EngineName) -> tuple[object, ...]:
    found = _newest(catalogue, name)
    lists = catalogue.books[name].versions
    return (
        f"[{name}](#{name})",
        code(found.package),
        found.version,
        found.released or "not known",
        ", ".join(lists),
        "no" if found.refusal else "yes",
        _recommended(found.package),
    )


def _recommended(package: str) -> str:
    policy = policy_file.policy_for(policy_file.read(), "prod")
    pins = engine_pins(snapshot.bundled(), package, policy)
    return pins.recommended or pins.reason


def _newest(catalogue: Catalogue, name: EngineName) -> EngineDescription:
    versions = catalogue.versions(name) or catalogue.books[name].versions
    return catalogue.describe(name, versions[-1])


def _section(catalogue: Catalogue, name: EngineName) -> str:
    found = _newest(catalogue, name)
    table_of = catalogue.tables[name]
    facts = [
        ("version shown", f"{found.version}, flag list of {found.flags_of}"),
        ("versions known", f"{len(catalogue.versions(name))}, all with the day of their upload"),
        ("quantisations", codes(found.quantizations)),
        ("types of the KV cache", codes(found.kv_cache_dtypes)),
        ("parallelism", codes(found.parallelism)),
        ("can", codes(found.features)),
        ("probes", _probes(found)),
        ("stop", _stop(found)),
        ("metrics", _metrics(found.metrics)),
        ("weights from object storage", _streaming(table_of.streaming)),
        ("model is built first", f"{codes(table_of.build.any)}: {table_of.build.reason}" if table_of.build else "no"),
    ]
    parts = [f"## {name}"]
    if found.refusal:
        parts.append(f"**Not offered**: {found.refusal}.")
    parts += [table(("fact", "value"), facts), _cannot(found), _stated(catalogue, name), _scores(catalogue, name)]
    return "\n\n".join(part for part in parts if part)


def _streaming(support: Streaming | None) -> str:
    if support is None:
        return "no, from files alone"
    schemes = codes(f"{scheme}://" for scheme in support.schemes)
    how = code(f"{support.flag} {support.value}")
    return f"{schemes} by {how} from {support.since} on; the image needs {support.needs}"


def _probes(found: EngineDescription) -> str:
    paths = {"startup": found.probes.startup, "readiness": found.probes.readiness, "liveness": found.probes.liveness}
    return ", ".join(f"{name} {code(path)}" for name, path in paths.items())


def _stop(found: EngineDescription) -> str:
    stop = found.shutdown
    drains = (
        f"finishes running requests ({stop.drain_seconds} s)" if stop.drains else "does not finish running requests"
    )
    flag = f", {code(stop.flag)}" if stop.flag else ""
    return f"{stop.signal}: {drains}{flag}; {stop.note}"


def _metrics(found: MetricsDialect) -> str:
    if found.path is None:
        return f"none ({found.source})"
    port = f" on port {found.port}" if found.port else ""
    return f"{code(found.path)}{port}, dialect {code(found.name)} ({found.source})"


def _cannot(found: EngineDescription) -> str:
    if not found.cannot:
        return ""
    lines = [
        f"- {codes(words.split(', '))}: {why}" for words, _, why in (item.partition(": ") for item in found.cannot)
    ]
    return f"### What {found.name} {found.version} can't do\n" + "\n".join(lines)


def _stated(catalogue: Catalogue, name: EngineName) -> str:
    written = catalogue.tables[name].written
    if not written:
        return ""
    rows = [(code(item.flag), code(_spelled(item.value)), codes(item.when) or "always", item.why) for item in written]
    title = f"### What every command line of {name} states\n{STATED}"
    return f"{title}\n\n" + table(("flag", "value", "when", "why"), rows)


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scores(catalogue: Catalogue, name: EngineName) -> str:
    scores = catalogue.tables[name].preference
    words = [word for word in ("default", *(str(item) for item in Workload)) if word in scores]
    rows = [(word, scores[word].score, scores[word].reason) for word in words]
    return "### Preference by workload\n" + table(("workload", "score", "reason"), rows)
