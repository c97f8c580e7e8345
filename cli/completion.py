"""What the shell offers: names that exist. Everything is imported when somebody presses Tab, never for help."""

from collections.abc import Iterable


def engines(incomplete: str) -> list[str]:
    """Engines of the house."""
    return _starting(_engine_names(), incomplete)


def releases(incomplete: str) -> list[str]:
    """``ENGINE==``, then the published versions of the engine, the newest first."""
    engine, equals, version = incomplete.partition("==")
    if not equals:
        return [f"{name}==" for name in _starting(_engine_names(), engine)]
    from sources.snapshot import bundled

    published = bundled().published_versions(engine)
    names = map(str, published.newest_first if published else ())
    return [f"{engine}=={name}" for name in _starting(names, version)]


def code_paths(incomplete: str) -> list[str]:
    """The words for code paths."""
    from fleet.codepath import KNOWN_PATHS

    return _starting(KNOWN_PATHS, incomplete)


def closable_paths(incomplete: str) -> list[str]:
    """The code paths that the gateway can close."""
    from fleet.codepath import CLOSABLE_AT_THE_DOOR

    return _starting(sorted(CLOSABLE_AT_THE_DOOR), incomplete)


def advisory_ids(incomplete: str) -> list[str]:
    """Ids and aliases of the bundled snapshot; nothing before the first letter, since there are too many."""
    if not incomplete:
        return []
    from sources.snapshot import bundled

    return _starting((name for item in bundled().advisories for name in item.all_ids), incomplete)


def models(incomplete: str) -> list[str]:
    """Ids of the model catalogue; a path is completed by the shell itself."""
    from fleet.model_catalogue import known_ids

    return _starting(known_ids(), incomplete)


def gpus(incomplete: str) -> list[str]:
    """GPUs of the tables."""
    from fleet.hardware import gpu_models

    return _starting(gpu_models(), incomplete)


def instances(incomplete: str) -> list[str]:
    """Instance types of the tables."""
    from fleet.hardware import instance_types

    return _starting(instance_types(), incomplete)


def _engine_names() -> list[str]:
    from fleet.spec import EngineName

    return [str(name) for name in EngineName]


def _starting(known: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in known if name.startswith(incomplete)]
