"""Records become advisory data: copies dropped, aliases merged, several sets laid over each other."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from fleet.advisory import Label, Record, merge
from fleet.facts import AdvisoryData, Quarantined
from sources.companions import Published


def assemble(
    records: Iterable[Record],
    *,
    labels: Mapping[str, Label],
    published: Published,
    quarantined: Sequence[Quarantined] = (),
    unknown_keys_ignored: int = 0,
    retrieved: date | None = None,
    source: str = "",
) -> AdvisoryData:
    """Advisory data of records; a defect that names none of our packages is left out after the merge."""
    kept = distinct(records)
    merged = merge(kept, labels)
    return AdvisoryData(
        advisories=tuple(advisory for advisory in merged if advisory.packages),
        published=dict(sorted(published.versions.items())),
        published_retrieved=published.retrieved,
        quarantined=tuple(quarantined),
        unknown_keys_ignored=unknown_keys_ignored,
        as_of=max((record.modified for record in kept if record.modified), default=None),
        retrieved=retrieved,
        source=source,
    )


def combine(layers: Sequence[AdvisoryData]) -> AdvisoryData:
    """Several sets as one: records merged again over all of them, the oldest day of reading counts."""
    records = (record for layer in layers for advisory in layer.advisories for record in advisory.records)
    labels = {key: label for layer in layers for key, label in labels_of(layer).items()}
    versions = {package: listed for layer in layers for package, listed in layer.published.items()}
    days = [layer.retrieved for layer in layers if layer.retrieved is not None]
    return assemble(
        records,
        labels=labels,
        published=Published(
            versions, min((x.published_retrieved for x in layers if x.published_retrieved), default="")
        ),
        quarantined=[item for layer in layers for item in layer.quarantined],
        unknown_keys_ignored=sum(layer.unknown_keys_ignored for layer in layers),
        retrieved=min(days) if len(days) == len(layers) else None,
        source=" + ".join(layer.source for layer in layers if layer.source),
    )


def labels_of(data: AdvisoryData) -> dict[str, Label]:
    """``package/ID`` -> label for every id of every labelled advisory, so that a lone alias finds its label too."""
    labels: dict[str, Label] = {}
    for advisory in data.advisories:
        for package in dict.fromkeys(name for name, _ in advisory.labels):
            own = [label for name, label in advisory.labels if name == package]
            joined = Label(
                paths=tuple(dict.fromkeys(path for label in own for path in label.paths)),
                is_confirmed=all(label.is_confirmed for label in own),
                source=own[0].source,
            )
            labels |= {f"{package}/{name}": joined for name in advisory.all_ids}
    return labels


def distinct(records: Iterable[Record]) -> tuple[Record, ...]:
    """Each record once, in order; a newer copy of a record replaces the older one.

    Two records under one id that are not copies (databases have reused ids) both stay, and so does a record without a
    date: it is not known to be the older one.
    """
    by_id: dict[str, list[Record]] = {}
    for record in records:
        by_id.setdefault(record.id, []).append(record)
    return tuple(record for same in by_id.values() for record in (_newest(same) if len(same) > 1 else same))


def _newest(copies: list[Record]) -> list[Record]:
    same = tuple(dict.fromkeys(copies))
    return [record for record in same if not any(_replaces(other, record) for other in same)]


def _replaces(newer: Record, older: Record) -> bool:
    if not (newer.modified and older.modified) or newer.modified <= older.modified:
        return False
    if newer.withdrawn and not newer.affected:
        return True
    packages = {entry.package for entry in newer.affected}
    return older.ids <= newer.ids and all(entry.package in packages for entry in older.affected)
