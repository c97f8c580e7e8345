"""What an engine of one version can do, for people and pages."""

from engines.flags import FlagList
from engines.tables import EngineTable, MetricsTable, QuantizationSupport, Requirement
from fleet.engine import EngineDescription, MetricsDialect, Shutdown
from fleet.spec import EngineName
from fleet.versions import parse_version


def describe(
    name: EngineName, table: EngineTable, flags: FlagList, refusal: str | None, released: str | None
) -> EngineDescription:
    """The description of a version."""
    return EngineDescription(
        name=name,
        package=table.package,
        version=flags.version,
        flags_of=flags.of,
        note=flags.note,
        released=released,
        refusal=refusal,
        quantizations=_quantizations(table, flags),
        kv_cache_dtypes=_kv_cache_dtypes(table, flags),
        parallelism=tuple(kind for kind, support in table.parallelism.items() if flags.has(support.flag)),
        features=_features(table, flags),
        cannot=_cannot(name, table, flags),
        metrics=metrics(table.metrics_of(flags.version, None)),
        probes=table.probes.probes(),
        shutdown=shutdown(table, flags),
    )


def metrics(table: MetricsTable) -> MetricsDialect:
    """The dialect that a row of the data states."""
    return MetricsDialect(**table.model_dump(exclude={"since", "before", "front"}))


def shutdown(table: EngineTable, flags: FlagList) -> Shutdown:
    """How a version is asked to stop."""
    stop = table.shutdown
    flag = stop.flag if stop.flag is not None and flags.has(stop.flag) else None
    return Shutdown(stop.signal, stop.drains, flag, stop.drain_seconds, stop.note)


def is_met(requirement: Requirement, flags: FlagList) -> bool:
    """Whether a version has what a requirement names."""
    flag = next((flag for flag in requirement.flags if flags.has(flag)), None)
    choices = flags.choices(flag) if flag else None
    return flag is not None and (requirement.choice is None or choices is None or requirement.choice in choices)


def _quantizations(table: EngineTable, flags: FlagList) -> tuple[str, ...]:
    def choices(support: QuantizationSupport) -> tuple[str, ...] | None:
        return flags.choices(support.choices_of) if support.choices_of else None

    return tuple(word for word, support in table.quantizations.items() if support.is_met(choices(support)))


def _kv_cache_dtypes(table: EngineTable, flags: FlagList) -> tuple[str, ...]:
    choices = flags.choices(table.kv_cache.flag) if table.kv_cache.flag else None
    values = table.kv_cache.values
    return tuple(word for word, value in values.items() if choices is None or value in choices)


def _features(table: EngineTable, flags: FlagList) -> tuple[str, ...]:
    version = parse_version(flags.version)
    limited = {ask for limit in table.limits if limit.covers(version) for ask in limit.any}
    met = (ask for requirement in table.requires if is_met(requirement, flags) for ask in requirement.any)
    return tuple(ask for ask in met if ask not in limited)


def _cannot(name: EngineName, table: EngineTable, flags: FlagList) -> tuple[str, ...]:
    version = parse_version(flags.version)
    limits = [f"{', '.join(limit.any)}: {limit.message}" for limit in table.limits if limit.covers(version)]
    missing = [
        f"{', '.join(item.any)}: {name} {flags.version} lacks {' '.join(filter(None, (item.flags[0], item.choice)))}"
        for item in table.requires
        if not is_met(item, flags)
    ]
    return (*limits, *missing)
