"""The model that a command is about: a ``config.json`` on disk, or an id of the bundled catalogue."""

from dataclasses import dataclass
from pathlib import Path

from cli.exits import CommandError, Exit, UsageError
from fleet import model_catalogue
from fleet.model import Model
from fleet.model_config import MAX_BYTES, ConfigError, read_config
from fleet.model_reading import read_model
from fleet.nearest import closest

NEAR = 3


@dataclass(frozen=True, slots=True)
class ModelAtHand:
    """A model with where it came from."""

    model: Model
    quantization: str | None
    """The precision of the checkpoint where its configuration states another one."""
    origin: str


def model_at_hand(name: str) -> ModelAtHand:
    """Read a model.

    Raises:
        UsageError: a file that can't be read or is no configuration.
        CommandError: neither a file nor an id of the catalogue (exit 4), with the nearest ids.
    """
    path = Path(name)
    if path.is_dir():
        path = path / "config.json"
    if path.suffix == ".json" or path.is_file():
        return ModelAtHand(_of_file(path), None, str(path))
    known = model_catalogue.find(name)
    if known is None:
        raise CommandError(_not_known(name), Exit.NOT_FOUND_OR_CONFLICT)
    origin = f"the bundled catalogue, {known.id}"
    origin += f", which has the shape of {known.shape_of}" if known.shape_of else ""
    try:
        return ModelAtHand(read_model(known.config, id=known.id), known.quantization, origin)
    except ConfigError as error:
        raise CommandError(str(error)) from None


def _of_file(path: Path) -> Model:
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} can't be read: it is no regular file")
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
            size = len(text) if len(text) <= MAX_BYTES else path.stat().st_size
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from None
    if size > MAX_BYTES:
        raise UsageError(f"{path} has {size:,} bytes; a config.json has at most {MAX_BYTES:,}")
    try:
        return read_model(read_config(text, source=str(path)), id=_id(path))
    except ConfigError as error:
        where = f"{path}: {error.key}" if error.key else str(path)
        raise UsageError(f"{where}: {error.message}") from None


def _id(path: Path) -> str:
    """The name of the file, or of its folder where the file is only called ``config.json``."""
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return name.replace("--", "/", 1)


def _not_known(name: str) -> str:
    near = closest(name, model_catalogue.known_ids(), most=NEAR)
    hint = f"; near it: {', '.join(near)}" if near else ""
    return f"'{name}' is no file and not in the model catalogue{hint}; give --model a Hugging Face config.json"
