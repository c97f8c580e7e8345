"""What is wrong with the versions that a stack states: of add-ons and charts, and the AMI releases of its nodes."""

import re
from collections.abc import Iterator

from fleet.cloud.node_images import release_findings
from fleet.nearest import did_you_mean
from infra.charts import DRA_DRIVER
from infra.problem import Problem, of_findings
from infra.stack_config import StackConfig
from infra.versions import ADD_ONS, CHARTS, numbers

ADD_ON_FORM = re.compile(r"v\d+\.\d+\.\d+(-eksbuild\.\d+)?")
CHART_FORM = re.compile(r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")
AL2023_FORM = re.compile(r"\d+\.\d+\.\d+-20\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
"""Kubernetes version and day."""
BOTTLEROCKET_FORM = re.compile(r"\d+\.\d+\.\d+(-[0-9a-f]+)?")
"""Version of Bottlerocket and commit."""
FIND = "'python -m infra.fill_versions' finds one where the key is left out"


def version_problems(config: StackConfig) -> Iterator[Problem]:
    """Of add-ons and charts."""
    said, compared = config.cluster.kubernetes, compared_version(config)
    if compared != said:
        message = f"the cluster has Kubernetes {said}, and every release of its nodes is of {compared}"
        remedy = f'set it to "{compared}", or take releases that begin with {said}.'
        yield Problem("cluster.kubernetes", said, message, remedy)
    yield from _unknown(config)
    yield from _add_ons(config)
    yield from _charts(config)


def compared_version(config: StackConfig) -> str:
    """The Kubernetes version that releases have to be of: the cluster's, unless all of several agree on another one.

    It is the cluster's version that is wrong then, which is told once.
    """
    nodes = [pool.image.release for pool in config.pools if pool.image.family == "al2023"]
    releases = [item for item in (config.system_nodes.release, *nodes) if item and AL2023_FORM.fullmatch(item)]
    versions = {item.rpartition(".")[0] for item in releases}
    return versions.pop() if len(releases) > 1 and len(versions) == 1 else config.cluster.kubernetes


def release_problems(key: str, release: str | None, family: str, kubernetes: str) -> Iterator[Problem]:
    """Of nodes; a missing one is told of with everything that is not filled in."""
    if not release:
        return
    moving = list(of_findings(key, release, release_findings(release, has_image=False)))
    if moving:
        yield from moving
    elif family == "bottlerocket":
        if AL2023_FORM.fullmatch(release) or not BOTTLEROCKET_FORM.fullmatch(release):
            yield Problem(key, release, f"{release} is no release of Bottlerocket", FIND)
    elif not AL2023_FORM.fullmatch(release):
        yield Problem(key, release, f"{release} is no release of AL2023, which has a version and a day", FIND)
    elif not release.startswith(f"{kubernetes}."):
        message = f"the release {release} is not of Kubernetes {kubernetes}"
        yield Problem(key, release, message, f"take a release that begins with {kubernetes}.")


def _unknown(config: StackConfig) -> Iterator[Problem]:
    for kind, named, known in (
        ("addons", config.versions.addons, tuple(ADD_ONS)),
        ("charts", config.versions.charts, (*CHARTS, DRA_DRIVER)),
    ):
        for name in named:
            if name not in known:
                hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
                message = f"{name} is not installed by this program"
                yield Problem(f"versions.{kind}.{name}", named[name], message, hint.removeprefix("; "))


def _add_ons(config: StackConfig) -> Iterator[Problem]:
    for name, version in config.versions.addons.items():
        known, key = ADD_ONS.get(name), f"versions.addons.{name}"
        if known is None or not version:  # an empty one is open, and told of with everything that is
            continue
        if not ADD_ON_FORM.fullmatch(version):
            yield Problem(key, version, f"'{version}' is no version of an EKS add-on", _meant(version))
        elif known.minimum is not None and numbers(version) < numbers(known.minimum):
            message = f"{name} {version} is older than {known.minimum}"
            yield Problem(key, version, message, f"take {known.minimum} or newer ({known.source})")


def _meant(version: str) -> str:
    if ADD_ON_FORM.fullmatch(f"v{version}"):
        return f"write v{version}"
    return f"write one such as v1.20.0-eksbuild.1; {FIND}"


def _charts(config: StackConfig) -> Iterator[Problem]:
    for name, version in config.versions.charts.items():
        if (name in CHARTS or name == DRA_DRIVER) and not CHART_FORM.fullmatch(version):
            known = CHARTS[name].version if name in CHARTS else None
            remedy = f"write one such as {known}, or leave it out" if known else "write one such as 1.0.0"
            yield Problem(f"versions.charts.{name}", version, f"'{version}' is no version of a chart", remedy)
