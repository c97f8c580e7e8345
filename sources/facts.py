"""The facts of one environment, gathered from files; and the bundle in which they travel."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from pydantic import ValidationError

from fleet.facts import AdvisoryData, Facts
from fleet.manifest import problems_of
from fleet.prices import with_own
from sources import environment as environment_files
from sources import osv_folder, policy_file, snapshot
from sources.errors import SourceError
from sources.whole_file import write_whole
from sources.yaml_file import FileError, read_text

BUNDLE_KIND = "Facts"
API_VERSION = "enginehouse.dev/v1"
MAX_BUNDLE_BYTES = 128 * 1024 * 1024
DEFAULT_ENVIRONMENTS = Path("environments")


def load(
    environment: str,
    *,
    today: date,
    data_dirs: Sequence[Path] = (),
    environments_dir: Path = DEFAULT_ENVIRONMENTS,
    policy: Path | None = None,
    catalogue_digest: str = "",
    allow_invented: bool = False,
) -> Facts:
    """Everything that a review in an environment looks at.

    ``data_dirs`` replace the bundled snapshot. A folder does not say when it was filled, so it counts as read today.

    Raises:
        SourceError: a folder or file that can't be read, or an environment that the policy does not name.
    """
    book = policy_file.read(policy)
    written = environment_files.read(environments_dir / environment, allow_invented=allow_invented)
    return Facts(
        environment=environment,
        today=today,
        data=advisory_data(data_dirs, today=today),
        policy=policy_file.policy_for(book, environment),
        images=written.images,
        waivers=written.waivers,
        triage=written.triage,
        pools=written.pools,
        prices=with_own(written.prices),
        model_configs=written.model_configs,
        catalogue_digest=catalogue_digest,
    )


def advisory_data(data_dirs: Sequence[Path], *, today: date) -> AdvisoryData:
    """The advisory data of folders, or the bundled snapshot when there are none; raises `SourceError`."""
    return osv_folder.read(data_dirs, retrieved=today) if data_dirs else snapshot.bundled()


def dumps(facts: Facts) -> str:
    """The bundle as JSON, with the digest of its facts."""
    document = {
        "apiVersion": API_VERSION,
        "kind": BUNDLE_KIND,
        "digest": facts.digest,
        "facts": facts.model_dump(mode="json", exclude_defaults=True),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def loads(text: str, *, source: str) -> Facts:
    """The facts of a bundle.

    Raises:
        SourceError: not such a bundle, a wrong field, or facts that differ from the digest beside them.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{source}: not JSON that can be read ({error})") from None
    if not isinstance(document, dict) or document.get("kind") != BUNDLE_KIND:
        raise SourceError(f"{source}: not a bundle of facts; expected a JSON object of kind {BUNDLE_KIND}")
    try:
        facts = Facts.model_validate(document.get("facts"))
    except ValidationError as error:
        raise FileError(source, problems_of(error, Facts)) from None
    if facts.digest != document.get("digest"):
        raise SourceError(
            f"{source}: the facts have the digest {facts.digest}, the bundle says {document.get('digest')}"
        )
    return facts


def write(path: Path, facts: Facts) -> None:
    """Write a bundle as a whole or not at all; raises `SourceError`."""
    write_whole(path, dumps(facts).encode())


def read(path: Path) -> Facts:
    """The facts of a bundle on disk; raises `SourceError`."""
    return loads(read_text(path, limit_bytes=MAX_BUNDLE_BYTES), source=str(path))
