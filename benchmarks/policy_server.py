"""What the policy pack costs: its own code per resource, and 1,000 resources through its server.

Run it with ``python benchmarks/policy_server.py``. The resources are those of the real prod program, recorded, as often
as it takes; the server is the pack's own process, spoken to as the engine does. "Policy code" is the time that the
checks of all policies take together on one resource, inside this process and without the framework.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the recorder and the server's harness are the tests'

from pulumi_policy import PolicyResource  # noqa: E402
from pulumi_policy.deserialize import deserialize_properties  # noqa: E402
from pulumi_policy.policy import PolicyCustomTimeouts, PolicyResourceOptions  # noqa: E402
from pulumi_policy.proxy import unknown_checking_proxy  # noqa: E402

from policies import pack  # noqa: E402
from policies.adapter import Check  # noqa: E402
from policies.judging import stack_of  # noqa: E402
from policies.knowledge import ground_of  # noqa: E402
from tests.infra.recording import Recorded  # noqa: E402
from tests.infra.stacks import PROD  # noqa: E402
from tests.policies.edited import recorded  # noqa: E402
from tests.policies.pack_server import PACK, pack_server  # noqa: E402

RESOURCES = 1_000
TARGET_MILLISECONDS, TARGET_SECONDS = 1.0, 4.0


def main() -> int:
    """Measure and print."""
    program = recorded("prod").resources
    print(f"prod program: {len(program)} resources, {len(pack.checks_by_rule())} policies")
    each = policy_code(program)
    print(f"policy code: {each * 1e3:.3f} ms a resource, whole stack included (target {TARGET_MILLISECONDS} ms)")
    many = copies(program, RESOURCES)
    stack = PROD.model_dump(mode="json", exclude_none=True)
    with pack_server("prod", stack_config=stack) as server:
        begin = time.perf_counter()
        said = server.review_each(many)
        middle = time.perf_counter()
        said += server.review_stack(many)
        end = time.perf_counter()
    print(f"server: {len(many)} resources one by one {middle - begin:.2f} s, as a stack {end - middle:.2f} s")
    print(f"server: together {end - begin:.2f} s (target {TARGET_SECONDS} s); {len(said)} messages")
    return 0


def policy_code(program: Sequence[Recorded]) -> float:
    """Seconds of all checks over all resources, for one of them."""
    ground = ground_of({"PULUMI_STACK": "prod"}, root=ROOT, policy=PACK / "policy.yaml", today=_nobody_asks)
    stack = stack_of([as_policy_resource(item) for item in program], ground)
    _link(stack.dependencies, program)
    begin = time.process_time()
    for rule in pack.checks_by_rule().values():
        for check in rule:
            if isinstance(check, Check):
                for seen in stack.among(check.types):
                    list(check.judge(seen))
            else:
                list(check.judge(stack, ground))
    return (time.process_time() - begin) / len(program)


def as_policy_resource(item: Recorded) -> PolicyResource:
    """A recorded resource as the framework hands it over."""
    values = {**item.outputs, "id": item.id}
    timeouts = PolicyCustomTimeouts(0, 0, 0)
    options = PolicyResourceOptions(item.options.protect, [], None, [], timeouts, [])
    props = unknown_checking_proxy(deserialize_properties(values))
    return PolicyResource(item.type, props, item.urn, item.name, options, None, None, [], {})


def copies(program: Sequence[Recorded], count: int) -> list[Recorded]:
    """So many resources: the program again and again, each time under other names."""
    found: list[Recorded] = []
    while len(found) < count:
        turn = len(found)
        found += [_copy(item, turn) for item in program[: count - len(found)]]
    return found


def _copy(item: Recorded, turn: int) -> Recorded:
    sources = {prop: frozenset(f"{urn}-{turn}" for urn in urns) for prop, urns in item.property_dependencies.items()}
    provider, separator, id_ = item.provider.rpartition("::")
    return replace(
        item,
        provider=f"{provider}-{turn}{separator}{id_}" if provider else "",
        name=f"{item.name}-{turn}",
        urn=f"{item.urn}-{turn}",
        parent=f"{item.parent}-{turn}",
        depends_on=frozenset(f"{urn}-{turn}" for urn in item.depends_on),
        property_dependencies=sources,
    )


def _link(dependencies: dict[str, dict[str, tuple[str, ...]]], program: Sequence[Recorded]) -> None:
    for item in program:
        dependencies[item.urn] = {prop: tuple(urns) for prop, urns in item.property_dependencies.items()}


def _nobody_asks() -> date:
    raise AssertionError("the prod program has no manifest")


if __name__ == "__main__":
    sys.exit(main())
