"""Model configurations that an environment brings along: ``environments/<env>/models/<org>--<name>.json``."""

from pathlib import Path
from typing import Any

from fleet.model_config import MAX_BYTES, ConfigError, read_config
from fleet.model_reading import read_model
from sources.errors import SourceError
from sources.yaml_file import read_text


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Model id -> its ``config.json``; a folder that is not there holds none.

    Raises:
        SourceError: a file that can't be read or is no configuration of a model, with the key.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        model_id = path.stem.replace("--", "/", 1)
        try:
            config = read_config(read_text(path, limit_bytes=MAX_BYTES), source=str(path))
            read_model(config, id=model_id)
        except ConfigError as error:
            raise SourceError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
        found[model_id] = config
    return found
