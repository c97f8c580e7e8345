"""A copy of what a stack needs of the checkout, with an environments folder of its own."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.stack_config import StackConfig
from tests.infra.manifest_folders import advisory
from tests.infra.stacks import config_of
from tests.pulumi.engine import ROOT, Stack
from tests.workloads.invented import VERSIONS

Fault = tuple[str, str, list[str | int], Any]
"""Type, end of the resource's name, path of the property, its value; None takes it out."""
ROOMS = ("engines", "fleet", "infra", "policies", "sources", "workloads")


@dataclass(frozen=True)
class Checkout:
    """The copy; every stack of it reads the same environments."""

    folder: Path
    stacks: Path
    surroundings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def copied(cls, to: Path, surroundings: Mapping[str, str]) -> "Checkout":
        """Copies the rooms with what Python made of them, which stays valid as times are kept."""
        for room in ROOMS:
            shutil.copytree(ROOT / room, to / "checkout" / room)
        shutil.copy2(ROOT / "Pulumi.yaml", to / "checkout")
        return cls(to / "checkout", to / "stacks", {**surroundings, "PYTHONPATH": str(to / "checkout")})

    @property
    def environments(self) -> Path:
        """The folder of the environments."""
        return self.folder / "environments"

    @property
    def judged(self) -> tuple[str, ...]:
        """What a command says to have its resources judged by the policy pack."""
        return "--policy-pack", str(self.folder / "policies")

    def harmless_advisories(self) -> dict[str, list[str]]:
        """The setting for advisories that say nothing against the engines."""
        folder = self.folder / "advisories"
        folder.mkdir(exist_ok=True)
        affected = {"package": {"ecosystem": "PyPI", "name": "vllm"}, "versions": ["0.1"]}
        record = {**advisory(id_="INVENTED-0"), "affected": [affected]}
        (folder / "INVENTED-0.json").write_text(json.dumps(record), encoding="utf-8")
        return {"enginehouse:data": ["advisories"]}

    def record_image(self, environment: str, image: str, **fields: str) -> None:
        """Writes down the only image that an environment knows."""
        folder = self.environments / environment
        folder.mkdir(parents=True, exist_ok=True)
        record = {"engine": "vllm", "version": VERSIONS["vllm"], "digest": image, "date": "2030-01-01", "who": "a test"}
        (folder / "images.yaml").write_text(json.dumps({"images": [{**record, **fields}]}), encoding="utf-8")

    def stack(self, name: str, config: StackConfig, extra: Mapping[str, Any] | None = None) -> Stack:
        """A new stack of the project."""
        found = Stack(self.folder, self.stacks / name, name, self.surroundings)
        return found.start({**config_of(config), **(extra or {})})

    def planted(
        self,
        name: str,
        config: StackConfig,
        faults: Sequence[Fault],
        objects: Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
    ) -> Stack:
        """A new stack of the same program with faults in it, and with more objects."""
        project = self.stacks / f"{name}-project"
        project.mkdir(parents=True)
        main = Path(__file__).with_name("planted")
        text = (self.folder / "Pulumi.yaml").read_text(encoding="utf-8").replace("main: infra/", f"main: {main}")
        (project / "Pulumi.yaml").write_text(text, encoding="utf-8")
        found = Stack(project, self.stacks / name, name, self.surroundings)
        planted = {"planted:faults": faults, "planted:objects": objects}
        return found.start({**config_of(config), **planted, **(extra or {})})
