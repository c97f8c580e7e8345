"""A pin whose own parts were changed by hand is stale, also where the written manifest leaves them open."""

from datetime import date

from engines.catalogue import load
from fleet.facts import Facts
from fleet.manifest import Manifest, parse
from fleet.placement import choose
from fleet.policy import Policy
from fleet.rules import stale
from sources.snapshot import bundled

FACTS = Facts(today=date(2030, 1, 1), data=bundled(), policy=Policy(allow_runtime_process=True))


def test_what_pinning_chose_and_a_hand_changed_is_found_by_the_identity_that_was_pinned():
    written = parse(
        "kind: InferenceDeployment\nmetadata: {name: chat}\nspec:\n  workload: chat\n"
        "  model: {id: Qwen/Qwen3-8B, revision: b968826d9c46dd6066d109eabc6255188de91218}\n"
    )
    assert isinstance(written, Manifest)
    pinned = choose(written, FACTS, load()).pinned
    assert pinned is not None
    assert pinned.spec.batch is not None
    assert stale(written, pinned) == []
    batch = pinned.spec.batch.model_copy(update={"max_num_seqs": 7})
    edited = pinned.model_copy(update={"spec": pinned.spec.model_copy(update={"batch": batch})})
    assert [item.pointer for item in stale(written, edited)] == ["/pin/identity"]
