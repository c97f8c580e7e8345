"""An environment's folder as one question to the fleet plan: its manifests, pools and policy."""

from dataclasses import dataclass
from pathlib import Path

from cli.exits import UsageError
from cli.facts_at_hand import today
from cli.manifests import read_manifest
from fleet.facts import Facts
from fleet.manifest import AnyManifest
from fleet.prices import Price, PriceTable, bundled
from sources import facts as reading
from sources import policy_file
from sources.errors import SourceError
from sources.manifest_file import pinned_path

POLICY = "'environments' in policies/policy.yaml"
BESIDE = frozenset({"images.yaml", "adopted.yaml", "pools.yaml", "prices.yaml"})
"""Files of an environment that are no manifests."""


@dataclass(frozen=True, slots=True)
class EnvironmentAtHand:
    """The manifests of an environment with the facts that they are placed by."""

    manifests: tuple[AnyManifest, ...]
    facts: Facts


def environment_at_hand(folder: Path, catalogue_digest: str, own_prices: tuple[Price, ...] = ()) -> EnvironmentAtHand:
    """Read an environment; a manifest that is pinned counts as pinned, and own prices count before the folder's.

    Raises:
        UsageError: no such folder, no pools.yaml, no manifest, or a file that can't be read.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give one like environments/prod")
    _check_name(folder.resolve().name)
    try:
        facts = reading.load(
            folder.resolve().name,
            today=today(),
            environments_dir=folder.resolve().parent,
            catalogue_digest=catalogue_digest,
        )
    except SourceError as error:
        raise UsageError(str(error)) from None
    if own_prices:
        table = facts.prices or bundled()
        own = PriceTable(retrieved=table.retrieved, prices=own_prices)
        facts = facts.model_copy(update={"prices": table.with_prices(own)})
    if not facts.pools:
        example = "pools: [{name: h100, instance_type: p5.48xlarge, max_nodes: 2}]"
        raise UsageError(f"{folder / 'pools.yaml'} names no pool; write down which nodes there are, such as {example}")
    paths = [path for path in sorted(folder.glob("*.yaml")) if path.name not in BESIDE]
    written = [path for path in paths if not path.name.endswith(".pinned.yaml")]
    if not written:
        raise UsageError(f"{folder} holds no manifest")
    found = _manifests(written)
    return EnvironmentAtHand(found, facts)


def _manifests(written: list[Path]) -> tuple[AnyManifest, ...]:
    """Each manifest, its pinned one where there is one; names are ids."""
    found: dict[str, tuple[Path, AnyManifest]] = {}
    for path in written:
        beside = pinned_path(path) if pinned_path(path).exists() else path
        manifest = read_manifest(beside)
        if manifest.name in found:
            other, _ = found[manifest.name]
            raise UsageError(
                f"{beside}: /metadata/name: '{manifest.name}' is taken by {other}; names are ids, rename one of them"
            )
        found[manifest.name] = (beside, manifest)
    return tuple(manifest for _, manifest in found.values())


def _check_name(name: str) -> None:
    """The folder's name is the environment's, and its policy must be one that people wrote: never a milder default."""
    try:
        policy_file.policy_for(policy_file.read(), name)
    except SourceError as error:
        raise UsageError(f"{error}; name the folder after one of them, or add '{name}' to {POLICY}") from None
