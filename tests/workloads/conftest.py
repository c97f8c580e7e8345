"""What the tests of rendering share."""

from collections.abc import Callable

import pytest

from engines.catalogue import Catalogue, load
from fleet.manifest import PinnedManifest
from fleet.node_pools import NodePool
from tests.workloads import invented
from workloads import KubernetesObject, RenderGround, render


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return load()


@pytest.fixture(scope="session")
def make() -> Callable[..., PinnedManifest]:
    return invented.pinned


@pytest.fixture(scope="session")
def pools() -> tuple[NodePool, ...]:
    return invented.POOLS


@pytest.fixture(scope="session")
def objects(catalogue: Catalogue) -> Callable[..., dict[str, KubernetesObject]]:
    """The objects of a manifest by kind; each kind stands there once."""

    def rendered(manifest: PinnedManifest, ground: RenderGround | None = None) -> dict[str, KubernetesObject]:
        found = render(manifest, catalogue, ground)
        by_kind = {item["kind"]: item for item in found}
        assert len(by_kind) == len(found)
        return by_kind

    return rendered
