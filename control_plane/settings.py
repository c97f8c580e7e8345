"""The settings of the control plane: a JSON file, with ``ENGINEHOUSE_<NAME>`` of the environment above it."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from control_plane.errors import SettingsError
from fleet.nearest import did_you_mean

Port = Annotated[int, Field(ge=0, le=65535)]
"""0 = pick a free one."""


def simulated_engines() -> dict[str, list[str]]:
    """How engines are started where no GPU is: the simulated engine in the dialect of each."""
    prefix = [sys.executable, "-m", "simulator.engine", "--dialect"]
    return {engine: [*prefix, engine, "--engine-version", "{version}"] for engine in ("vllm", "sglang")}


class Settings(BaseSettings):
    """What one control plane is told at its start."""

    model_config = SettingsConfigDict(env_prefix="ENGINEHOUSE_", extra="forbid", frozen=True)

    database_url: str = Field(repr=False)
    """``sqlite:////abs/path/state.db`` or a PostgreSQL URL; it may hold a password, so it is never shown."""
    host: str = "127.0.0.1"
    port: Port = 8600
    metrics_port: Port = 8601
    environment: str = "local"
    advisory_folders: tuple[Path, ...] = ()
    """Folders of OSV records that are watched."""
    advisory_bundled: bool = True
    """Whether the bundled snapshot counts beside the folders."""
    policy_file: Path | None = None
    """``None`` = the working tree's, else the bundled one."""
    environment_dir: Path | None = None
    """The folder ``environments/<env>`` with images, waivers and triage; ``None`` = none."""
    cluster: Literal["none", "processes"] = "none"
    launch: dict[str, list[str]] = Field(default_factory=simulated_engines)
    """Engine -> how it is started; ``{version}`` stands for the pinned version."""
    process_dir: Path | None = None
    """Where records and logs of engine processes lie."""
    ready_file: Path | None = None
    drain_seconds: Annotated[float, Field(gt=0)] = 30.0
    """How long a replaced engine may finish its requests."""
    stop_seconds: Annotated[float, Field(gt=0)] = 10.0
    """How long an engine may take to end before it is killed."""
    watch_seconds: Annotated[float, Field(gt=0)] = 0.2
    """How often advisory folders are looked at."""
    reconcile_seconds: Annotated[float, Field(gt=0)] = 0.5
    """How often engines are looked at."""
    jwks_seconds: Annotated[float, Field(gt=0)] = 300.0
    """How often the public keys of a token issuer are read again from its address."""
    jwks_retry_seconds: Annotated[float, Field(gt=0)] = 30.0
    """The same after an attempt that failed; the last good keys stay in use."""
    jwks_ca_file: Path | None = None
    """Who signed the certificates of these addresses; ``None`` = the public authorities."""
    usage_window_days: Annotated[int, Field(ge=1, le=366)] = 14
    """How long ids of usage records are kept; a record that a gateway brings later than that is not counted."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment above the file; nothing else."""
        return (env_settings, init_settings)


def read_settings(path: Path) -> Settings:
    """Read a settings file.

    Raises:
        SettingsError: it can't be read, an unknown key, a wrong value.
    """
    try:
        raw = json.loads(path.read_text())
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise SettingsError(f"{path} holds a {type(raw).__name__}; expected an object of settings")
    return settings_of(raw, source=str(path))


def settings_of(raw: dict[str, object], *, source: str = "settings") -> Settings:
    """The settings that a parsed object holds; raises `SettingsError`."""
    unknown = [name for name in raw if name not in Settings.model_fields]
    if unknown:
        hint = did_you_mean(unknown[0], Settings.model_fields)
        raise SettingsError(f"{source}: unknown setting '{unknown[0]}'{hint}")
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        raise SettingsError(f"{source}: {_sentence(error)}") from None
    if settings.cluster == "processes" and settings.process_dir is None:
        raise SettingsError(f"{source}: cluster 'processes' needs 'process_dir', the folder for records and logs")
    return settings


def _sentence(error: ValidationError) -> str:
    parts = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors(include_input=False))
    return "; ".join(parts)
