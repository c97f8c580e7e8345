"""Invented folders of an environment: manifests with their pins, and the facts by which they are judged."""

import json
from datetime import date
from pathlib import Path
from typing import Any

from engines.catalogue import load
from fleet.canary_arm import canary_arm
from fleet.facts import Facts
from fleet.images import ImageRecord
from fleet.manifest import Manifest, PinnedManifest, dump, from_document
from fleet.policy import Policy
from infra.manifest_review import Judged, judged
from sources import osv_folder
from sources.environment import Adopted
from tests.workloads.invented import SPEC, VERSIONS, image

TODAY = date(2030, 1, 1)


def spec(**parts: Any) -> dict[str, Any]:
    """A spec with whole parts replaced."""
    engine = {"name": "vllm", "version": VERSIONS["vllm"], "image": image("vllm")}
    return {key: value for key, value in {**SPEC, "engine": engine, **parts}.items() if value is not None}


def written(name: str = "chat", **parts: Any) -> Manifest:
    """A written manifest."""
    document = {"kind": "InferenceDeployment", "metadata": {"name": name}, "spec": spec(**parts)}
    found = from_document(document, source="invented")
    assert isinstance(found, Manifest)
    return found


def pin_of(source: Manifest) -> PinnedManifest:
    """Its pin, as pinning makes it where nothing is open."""
    pin = {"source_digest": source.source_digest, "facts_digest": "", "catalogue_digest": "", "runtime": "image"}
    head = {"kind": "PinnedInferenceDeployment", "metadata": source.metadata.model_dump()}
    found = from_document({**head, "spec": source.spec.model_dump(exclude_none=True), "pin": pin}, source="invented")
    assert isinstance(found, PinnedManifest)
    return found


def put(folder: Path, source: Manifest, pinned: PinnedManifest | None = None) -> PinnedManifest:
    """Both files of a manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    pinned = pinned or pin_of(source)
    (folder / f"{source.name}.yaml").write_text(dump(source), encoding="utf-8")
    (folder / f"{source.name}.pinned.yaml").write_text(dump(pinned), encoding="utf-8")
    return pinned


def put_canary(folder: Path, source: Manifest, pinned: PinnedManifest | None = None) -> PinnedManifest:
    """The pin of a manifest's canary, as pinning makes it where nothing is open."""
    arm = pin_of(canary_arm(source))
    pin = arm.pin.model_copy(update={"source_digest": source.source_digest})
    pinned = pinned or arm.model_copy(update={"pin": pin})
    (folder / f"{source.name}.canary.pinned.yaml").write_text(dump(pinned), encoding="utf-8")
    return pinned


def advisory(package: str = "vllm", id_: str = "INVENTED-1") -> dict[str, Any]:
    """A record that affects every version and names no fix but one that lies ahead."""
    events = [{"introduced": "0"}, {"fixed": "9.0.0"}]
    affected = {"package": {"ecosystem": "PyPI", "name": package}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    severity = [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]
    return {"id": id_, "modified": "2029-12-31T00:00:00Z", "affected": [affected], "severity": severity}


def facts(data: Path, *records: dict[str, Any], **policy: Any) -> Facts:
    """Facts of today with these records and no others."""
    data.mkdir(parents=True, exist_ok=True)
    harmless = {
        **advisory(id_="INVENTED-0"),
        "affected": [{"package": {"ecosystem": "PyPI", "name": "vllm"}, "versions": ["0.1"]}],
    }
    for record in (harmless, *records):
        (data / f"{record['id']}.json").write_text(json.dumps(record), encoding="utf-8")
    recorded = ImageRecord(engine="vllm", version=VERSIONS["vllm"], digest=image("vllm"), date=TODAY, who="invented")
    found = osv_folder.read([data], retrieved=TODAY)
    return Facts(
        environment="prod",
        today=TODAY,
        data=found,
        policy=Policy(**policy),
        images=(recorded,),
        catalogue_digest=load().digest,
    )


def judge(folder: Path, known: Facts, *adopted: Adopted) -> Judged:
    """What becomes of the folder."""
    return judged(folder, known, load(), adopted)
