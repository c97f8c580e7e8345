"""``enginehouse render`` prints objects without a cluster, and says why where there are none."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from cli.exits import CommandError, Exit
from cli.main import app
from engines.catalogue import load
from fleet.manifest import Manifest, dump, from_document
from tests.workloads.invented import SPEC, image, pinned
from workloads import NodeLocalWeights, RenderGround, render


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["render", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    found = tmp_path / "environments" / "prod"
    found.mkdir(parents=True)
    return found


@pytest.fixture
def file(folder: Path) -> Path:
    place = folder / "support-chat.pinned.yaml"
    place.write_text(dump(pinned(scaling={"max": 3})), encoding="utf-8")
    return place


def put_written(folder: Path) -> Path:
    engine = {"name": "vllm", "version": "0.33.0", "image": image("vllm")}
    document = {"kind": "InferenceDeployment", "metadata": {"name": "support-chat"}, "spec": {**SPEC, "engine": engine}}
    found = from_document(document, source="invented")
    assert isinstance(found, Manifest)
    source = folder / "support-chat.yaml"
    source.write_text(dump(found), encoding="utf-8")
    pin = pinned(scaling={"max": 1})
    record = pin.pin.model_copy(update={"source_digest": found.source_digest})
    pin = pin.model_copy(update={"pin": record, "spec": found.spec})
    (folder / "support-chat.pinned.yaml").write_text(dump(pin), encoding="utf-8")
    return source


def kinds(result: Result) -> list[str]:
    return [item["kind"] for item in YAML(typ="safe", pure=True).load_all(result.stdout)]


def test_yaml_is_a_stream_of_the_objects_that_rendering_gives(file):
    result = run(file)
    assert result.exit_code == 0
    found = list(YAML(typ="safe", pure=True).load_all(result.stdout))
    assert found == list(render(pinned(scaling={"max": 3}), load()))


def test_json_is_one_list_as_kubectl_takes_it(file):
    result = run(file, "-o", "json")
    found = json.loads(result.stdout)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    assert found["items"] == list(render(pinned(scaling={"max": 3}), load()))


def test_the_same_bytes_each_time(file):
    assert run(file).stdout_bytes == run(file).stdout_bytes


def test_of_a_written_manifest_its_pin_is_rendered_once(folder):
    written = put_written(folder)
    result = run(written, folder / "support-chat.pinned.yaml")
    assert result.exit_code == 0
    assert kinds(result).count("Deployment") == 1
    assert f"{written} is written; its pin" in result.stderr


def test_a_written_manifest_without_a_pin_is_refused_with_the_command(folder):
    written = put_written(folder)
    (folder / "support-chat.pinned.yaml").unlink()
    result = run(written)
    assert isinstance(result.exception, CommandError)
    assert result.exception.code is Exit.REFUSED
    assert f"enginehouse pin --write {written}" in str(result.exception)


def test_a_stale_pin_beside_a_written_manifest_is_refused(folder):
    written = put_written(folder)
    written.write_text(written.read_text().replace("32768", "4096"))
    result = run(written)
    assert isinstance(result.exception, CommandError)
    assert result.exception.code is Exit.REFUSED
    assert "enginehouse pin" in str(result.exception)


def test_what_can_t_be_rendered_is_refused_after_the_rest_is_printed(folder, file):
    wide = pinned("wide", hardware={"instance_type": "p5.48xlarge", "gpus": 16}, parallelism={"tensor": 8, "data": 2})
    (folder / "wide.pinned.yaml").write_text(dump(wide), encoding="utf-8")
    result = run(file, folder / "wide.pinned.yaml", "-o", "json")
    assert isinstance(result.exception, CommandError)
    assert result.exception.code is Exit.REFUSED
    assert "spans 2 p5.48xlarge" in str(result.exception)
    assert "(several-nodes)" in str(result.exception)
    assert {item["metadata"]["name"] for item in json.loads(result.stdout)["items"]} == {"support-chat"}


def test_the_environment_s_pools_choose_the_nodes(folder, file):
    (folder / "pools.yaml").write_text("pools: [{name: big, instance_type: p5.48xlarge}]\n")
    assert "enginehouse.dev/pool" in run(file).stdout
    (folder / "pools.yaml").write_text("pools: [{name: small, instance_type: g6.xlarge}]\n")
    result = run(file)
    assert isinstance(result.exception, CommandError)
    assert "no pool has p5.48xlarge" in str(result.exception)


def test_namespace_weights_and_prometheus_are_options(file):
    result = run(
        file, "--namespace", "prod", "--weights", "node-local", "--prometheus", "http://p.invalid", "-o", "json"
    )
    ground = RenderGround(namespace="prod", weights=NodeLocalWeights(), prometheus_url="http://p.invalid")
    assert json.loads(result.stdout)["items"] == list(render(pinned(scaling={"max": 3}), load(), ground))


def test_what_copies_weights_is_an_option(file):
    copied = NodeLocalWeights(copy_image=image("aws-cli"))
    result = run(file, "--weights", "node-local", "--copy-image", image("aws-cli"), "-o", "json")
    assert json.loads(result.stdout)["items"] == list(
        render(pinned(scaling={"max": 3}), load(), RenderGround(weights=copied))
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--weights", "node-local", "--copy-image", "aws-cli:2"], "has no digest"),
        (["--copy-image", image("aws-cli")], "nothing is copied from a file system"),
    ],
)
def test_an_image_that_is_none_or_copies_nothing_is_a_usage_error(file, options, words):
    result = run(file, *options)
    assert isinstance(result.exception, CommandError)
    assert result.exception.code is Exit.USAGE
    assert words in str(result.exception)


@pytest.mark.parametrize("content", ["", "kind: Deployment\n", "kind: [\n"])
def test_what_is_no_manifest_is_a_usage_error(folder, content):
    place = folder / "x.pinned.yaml"
    place.write_text(content)
    result = run(place)
    assert isinstance(result.exception, CommandError)
    assert result.exception.code is Exit.USAGE


def test_a_namespace_that_is_no_dns_label_is_a_usage_error(file):
    result = run(file, "--namespace", "Not A Label")
    assert isinstance(result.exception, CommandError)
    assert result.exception.code is Exit.USAGE
    assert "Not A Label" in str(result.exception)
