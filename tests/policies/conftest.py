"""What the tests of the pack share: its processes, one for each environment, over a checkout of their own."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.infra.manifest_folders import advisory
from tests.infra.stacks import VARIANTS
from tests.policies.pack_server import PACK, PackServer, pack_server
from tests.workloads.invented import VERSIONS, image

PackOf = Callable[[str], PackServer]


@pytest.fixture(scope="session")
def pack_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout that holds the pack's program, an environment's images and one harmless advisory."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "policies").mkdir()
    for name in ("__main__.py", "PulumiPolicy.yaml", "policy.yaml"):
        shutil.copy(PACK / name, root / "policies" / name)
    folder = root / "environments" / "prod"
    folder.mkdir(parents=True)
    recorded = {
        "engine": "vllm", "version": VERSIONS["vllm"], "digest": image("vllm"), "date": "2030-01-01",
        "who": "nobody", "cuda": "13.0",
    }  # fmt: skip
    (folder / "images.yaml").write_text(json.dumps({"images": [recorded]}), encoding="utf-8")
    harmless = {"affected": [{"package": {"ecosystem": "PyPI", "name": "vllm"}, "versions": ["0.1"]}]}
    (root / "data").mkdir()
    (root / "data" / "harmless.json").write_text(
        json.dumps({**advisory(id_="INVENTED-0"), **harmless}), encoding="utf-8"
    )
    return root


@pytest.fixture(scope="session")
def pack_of(pack_checkout: Path) -> Iterator[PackOf]:
    """The pack for the stack of a variant; one process for each, until the tests are through."""
    servers: dict[str, PackServer] = {}
    with ExitStack() as running:

        def started(variant: str) -> PackServer:
            if variant not in servers:
                config = VARIANTS[variant]
                stack = config.model_dump(mode="json", exclude_none=True)
                server = pack_server(
                    config.environment, pack=pack_checkout / "policies", stack_config=stack, data=["data"]
                )
                servers[variant] = running.enter_context(server)
            return servers[variant]

        yield started
