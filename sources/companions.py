"""Files beside the records: labels of code paths and published versions, recognised by what they hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from fleet import codepath
from fleet.advisory import Label, normalised_package
from sources.errors import BadRecord

LABEL_CODES: Mapping[str, codepath.CodePath] = {
    "mm": codepath.MULTIMODAL,
    "ssrf": codepath.MEDIA_SSRF,
    "disagg": codepath.DISAGGREGATION,
    "dist": codepath.MULTI_NODE,
    "struct": codepath.STRUCTURED_OUTPUT,
    "tool": codepath.TOOL_PARSER,
    "tmpl": codepath.CHAT_TEMPLATE,
    "embeds": codepath.PROMPT_EMBEDS,
    "load": codepath.MODEL_LOAD,
    "admin": codepath.WEIGHT_ENDPOINTS,
    "spec": codepath.SPECULATIVE,
    "batch": codepath.BATCH_RUNNER,
    "supply": codepath.IMAGE_BUILD,
}
"""Short codes of labels.json; a code that is not here is the word itself."""


class LabelsFile(BaseModel):
    """``labels.json``: ``package/ID`` -> codes, the main path first."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    labels: dict[str, tuple[str, ...]]


class VersionsFile(BaseModel):
    """``versions.json``: package -> versions on the index, without yanked ones, and the day of reading."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    versions: dict[str, tuple[str, ...]]
    retrieved: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """Published versions of packages and the day on which the index was read."""

    versions: Mapping[str, tuple[str, ...]]
    retrieved: str


def is_labels(document: object) -> bool:
    """Whether a parsed document is a labels file."""
    return _holds(document, "labels")


def is_versions(document: object) -> bool:
    """Whether a parsed document is a versions file."""
    return _holds(document, "versions")


def _holds(document: object, key: str) -> bool:
    if not isinstance(document, dict) or "id" in document or "affected" in document:
        return False
    return isinstance(document.get(key), dict)


def read_labels(document: object, *, source: str) -> dict[str, Label]:
    """``package/ID`` -> confirmed label; raises `BadRecord`."""
    read = _validated(LabelsFile, document)
    labels = {}
    for key, codes in read.labels.items():
        package, slash, name = key.partition("/")
        if not slash or not name or not codes:
            raise BadRecord(f"the label '{key[:100]}' is not of the form package/ID with at least one code")
        paths = tuple(dict.fromkeys(LABEL_CODES.get(code, code) for code in codes))
        labels[f"{normalised_package(package)}/{name}"] = Label(paths=paths, source=source)
    return labels


def read_versions(document: object) -> Published:
    """Published versions; raises `BadRecord`."""
    read = _validated(VersionsFile, document)
    versions = {normalised_package(package): listed for package, listed in read.versions.items()}
    return Published(versions=versions, retrieved=read.retrieved)


def _validated(model: type[Any], document: object) -> Any:  # noqa: ANN401 - the model's own type
    try:
        return model.model_validate(document)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        pointer = "".join(f"/{part}" for part in detail["loc"])
        raise BadRecord(f"{pointer}: {detail['msg']}") from None
