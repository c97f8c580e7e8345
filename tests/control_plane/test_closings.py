"""Closings are proposed where an open defect is reached by a path that the gateway can close, and taken by people."""

import json

import pytest

from cli.closings import MOST_ADVISORY_CHARACTERS, closed_path
from cli.exits import Exit
from control_plane.records import Scope
from fleet.advisory import Label

PATH = "/v1/proposed-closings"
LABELS = {"vllm/GHSA-media": Label(paths=("multimodal",)), "vllm/GHSA-core": Label(paths=("core",))}


def publish(world, *names, labels=LABELS, **parts):
    """Records about every version, by their labels."""
    world.publish(*(world.record(name, **parts) for name in names), labels=labels)


def proposals(world, **query):
    return world.get(PATH, params=query).json()["items"]


@pytest.fixture
def house(world):
    """A deployment that takes images, and another of the same model."""
    images = {"features": {"modalities": ["text", "image"]}}
    world.put(world.pinned("chat", **images))
    world.put(world.pinned("chat-canary", served_name="chat", **images))
    world.put(world.pinned("other", engine="sglang", version="0.5.23", **images))
    return world


def close(world, *paths, name="chat", **more):
    closed = [{"path": path, "reference": "EH-1", "owner": "ann", "reason": "so"} for path in paths]
    body = {"metadata": {"name": name}, "spec": {"closed_paths": closed, **more}}
    found = world.get(f"/v1/routes/{name}")
    etag = found.headers["etag"] if found.status_code == 200 else None
    answer = world.call("PUT", f"/v1/routes/{name}", json=body, etag=etag)
    assert answer.status_code in (200, 201), answer.text


def test_a_path_with_an_open_defect_is_proposed_with_what_it_is_about(house):
    assert proposals(house) == []
    publish(house, "GHSA-media", "GHSA-core", fixed="0.34.0")
    assert proposals(house) == [
        {
            "model": "chat",
            "path": "multimodal",
            "route": None,
            "refused": True,
            "severity": "critical",
            "advisories": ["GHSA-media"],
            "deployments": ["chat", "chat-canary"],
        }
    ]
    assert "closed_paths" not in house.get("/v1/routes").text
    (route,) = (item for item in house.get("/v1/gateway/snapshot").json()["routes"] if item["model"] == "chat")
    assert route["closed_paths"] == []


def test_a_closed_path_is_no_longer_proposed_and_an_open_one_is_again(house):
    publish(house, "GHSA-media")
    close(house, "multimodal")
    assert proposals(house) == []
    close(house, "tool-parser")
    (item,) = proposals(house)
    assert (item["path"], item["route"]) == ("multimodal", "chat")


def test_a_defect_that_is_fixed_proposes_nothing(house):
    publish(house, "GHSA-media")
    assert proposals(house) != []
    publish(house, "GHSA-media", fixed="0.33.0")
    assert proposals(house) == []


def test_a_path_is_proposed_only_where_closing_it_is_enough(house):
    both = {"vllm/GHSA-both": Label(paths=("multimodal", "core"))}
    publish(house, "GHSA-both", "GHSA-unlabelled", labels=both)
    assert proposals(house) == []


def test_an_unrated_defect_is_a_residual_and_says_so(house):
    publish(house, "GHSA-media", severity=None)
    (item,) = proposals(house)
    assert (item["refused"], item["severity"]) == (False, None)


def test_what_a_person_has_accepted_is_not_proposed(house):
    publish(house, "GHSA-media")
    for name in ("chat", "chat-canary"):
        identity = house.get(f"/v1/deployments/{name}").json()["status"]["identity"]
        spec = {
            "identity": identity, "advisory": "GHSA-media", "owner": "ann", "reason": "only trusted images",
            "expires": "2030-01-20",
        }  # fmt: skip
        body = {"metadata": {"name": f"w-{name}"}, "spec": spec}
        answer = house.call("PUT", f"/v1/waivers/w-{name}", json=body, scope=Scope.SECURITY_ADMIN)
        assert answer.status_code == 201, answer.text
    house.assembly.house.inspector.review_everything()
    assert proposals(house) == []


def test_proposals_are_read_by_model_and_page_by_page(house):
    house.put(house.pinned("chat-two", features={"modalities": ["text", "image"]}))
    publish(house, "GHSA-media")
    assert [item["model"] for item in proposals(house)] == ["chat", "chat-two"]
    assert [item["model"] for item in proposals(house, model="chat-two")] == ["chat-two"]
    assert proposals(house, model="nobody") == []
    first = house.get(PATH, params={"page_size": 1}).json()
    second = house.get(PATH, params={"page_size": 1, "page_token": first["next_page_token"]}).json()
    assert [item["model"] for item in (*first["items"], *second["items"])] == ["chat", "chat-two"]
    assert second["next_page_token"] is None


@pytest.mark.parametrize(("scope", "status"), [(None, 401), (Scope.GATEWAY, 403), (Scope.READER, 200)])
def test_gateways_and_strangers_never_read_why_a_path_would_be_closed(house, scope, status):
    assert house.call("GET", PATH, scope=scope).status_code == status


# --- The commands ---
def test_a_proposal_is_listed_and_taken_with_one_command(house, shell):
    publish(house, "GHSA-media", fixed="0.34.0")
    code, out, _ = shell("routes", "proposals", "-o", "json")
    assert (code, [item["path"] for item in json.loads(out)["items"]]) == (0, ["multimodal"])
    assert "GHSA-media" in shell("routes", "proposals", "chat")[1]
    assert shell("routes", "accept", "chat", "--reference", "EH-12", "--owner", "ann")[0] == 0
    (route,) = (item for item in house.get("/v1/gateway/snapshot").json()["routes"] if item["model"] == "chat")
    assert route["closed_paths"] == [{"path": "multimodal", "reference": "EH-12"}]
    (stored,) = house.get("/v1/routes").json()["items"]
    assert stored["spec"]["closed_paths"][0]["advisory"] == "GHSA-media"
    reasons = [item["reason"] for item in house.get("/v1/audit-events").json()["items"]]
    assert "multimodal closed as EH-12 for GHSA-media by ann: proposed: GHSA-media in chat, chat-canary" in reasons
    code, _, message = shell("routes", "accept", "chat", "--reference", "EH-12", "--owner", "ann")
    assert (code, message) == (Exit.NOT_FOUND_OR_CONFLICT, "no closing is proposed for 'chat'")


def test_what_is_set_for_a_route_stays_when_a_proposal_is_taken(house, shell):
    publish(house, "GHSA-media")
    close(house, "tool-parser", name="by-name", model="chat", aliases=["talk"])
    code, _, message = shell("routes", "accept", "chat", "--reference", "E", "--owner", "ann", "--path", "api")
    assert (code, "proposed are: multimodal" in message) == (Exit.NOT_FOUND_OR_CONFLICT, True)
    assert shell("routes", "accept", "chat", "--reference", "E", "--owner", "ann", "--path", "multimodal")[0] == 0
    (stored,) = house.get("/v1/routes").json()["items"]
    assert (stored["metadata"]["name"], stored["spec"]["aliases"]) == ("by-name", ["talk"])
    assert [item["path"] for item in stored["spec"]["closed_paths"]] == ["tool-parser", "multimodal"]


def test_a_model_whose_name_is_no_name_takes_a_route_with_another(house, shell):
    house.put(house.pinned("third", served_name="org/model", features={"modalities": ["text", "image"]}))
    publish(house, "GHSA-media")
    taken = ("routes", "accept", "org/model", "--reference", "E", "--owner", "ann")
    assert shell(*taken)[0] != 0
    assert shell(*taken, "--route", "org-model")[0] == 0
    assert proposals(house, model="org/model") == []


@pytest.mark.parametrize("count", [1, 3, 50])
def test_the_advisories_of_a_closed_path_fit_what_a_route_keeps(count):
    ids = [f"GHSA-{number:04}-xxxx-xxxx" for number in range(count)]
    item = {"path": "multimodal", "advisories": ids, "deployments": ["a"]}
    text = closed_path(item, "E", "ann", None)["advisory"]
    assert len(text) <= MOST_ADVISORY_CHARACTERS
    assert text.startswith(ids[0])
    assert ("more" in text) is (count == 50)
    long = closed_path({**item, "advisories": ["x" * 300]}, "E", "ann", "why")
    assert (long["advisory"], long["reason"]) == ("x" * MOST_ADVISORY_CHARACTERS, "why")
