"""The extracts of the package data are what the lists beside the checkout say."""

import json
import tomllib
from pathlib import Path

import pytest

from engines.catalogue import Catalogue
from fleet.spec import EngineName

MEDIA_KEYS = ("vision", "image", "video", "audio")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_a_flag_extract_is_made_again_from_the_lists(engine, shared: Path, extracts, checkout) -> None:
    made = extracts["render"](extracts["extract_lists"](shared / "engines" / "flags", engine))
    assert made == (checkout / "engines" / "data" / "flags" / f"{engine}.json").read_text(encoding="utf-8")


def test_a_flag_extract_has_every_flag_of_the_real_parser(shared: Path, catalogue: Catalogue) -> None:
    rows = json.loads((shared / "engines/flags/vllm-0.32.0.argparse.json").read_text())["flags"]
    flags = catalogue.books[EngineName.VLLM].at("0.32.0")
    spellings = {name for row in rows if "flag" in row for name in (row["flag"], *row["aliases"])}
    long = {name for name in spellings if name.startswith("--")} - {"--help"}
    assert {name for name in long if not flags.has(name)} == set()
    assert len(flags.spellings) == len({name for name in long if not name.startswith("--no-")})


def test_the_release_days_are_those_of_the_index(shared: Path, checkout) -> None:
    index = json.loads((shared / "engines/flags/pypi_upload_dates.json").read_text())
    releases = tomllib.loads((checkout / "engines" / "releases.toml").read_text(encoding="utf-8"))
    for name in ("vllm", "sglang", "tensorrt-llm"):
        expected = {v: item["first"][:10] for v, item in index[name].items() if item["yanked"] is None}
        assert {version: day.isoformat() for version, day in releases[name].items()} == expected


def test_the_metrics_of_vllm_are_in_the_list_of_each_version(shared: Path, catalogue: Catalogue) -> None:
    listed = json.loads((shared / "engines/flags/vllm_metric_names_by_version.json").read_text())
    for version, names in listed.items():
        dialect = catalogue.metrics(EngineName.VLLM, version)
        used = [dialect.running, dialect.waiting, dialect.kv_usage, dialect.prefix_hits, dialect.prefix_queries]
        used += [dialect.rejected, dialect.ttft_seconds, dialect.inter_token_seconds, dialect.e2e_seconds]
        assert {name.removesuffix("_total") for name in used if name} <= set(names)
        assert (dialect.rejected is not None) == ("vllm:admission_rejections" in names)


def test_the_metrics_of_sglang_are_in_the_list(shared: Path, catalogue: Catalogue) -> None:
    names = (shared / "engines/flags/sglang-0.5.23.metrics.txt").read_text().split()
    dialect = catalogue.metrics(EngineName.SGLANG, "0.5.23")
    used = (dialect.running, dialect.waiting, dialect.kv_usage, dialect.prefix_hits, dialect.ttft_seconds)
    assert set(used) <= set(names)


def test_no_model_with_a_media_part_in_its_configuration_counts_as_text_only(shared: Path, catalogue) -> None:
    known = 0
    for path in (shared / "models").glob("*--*.json"):
        model_id = path.stem.replace("--", "/", 1)
        config = json.loads(path.read_text())
        architecture = config["architectures"][0]
        takes_media = any(word in key for key in config for word in MEDIA_KEYS)
        takes_media = takes_media or "ConditionalGeneration" in architecture
        if catalogue.models.is_text_only(model_id):
            assert not takes_media, model_id
            known += 1
    assert known > 30


def test_the_flags_of_a_wheel_are_read_by_ast(tmp_path: Path, extracts) -> None:
    """The extracts of lmdeploy and deepspeed come from wheels; this reads a small invented one the same way."""
    (tmp_path / "lmdeploy/cli").mkdir(parents=True)
    helper = "class ArgumentHelper:\n def tp(p):\n  p.add_argument('--tp', type=int, default=1, choices=[1, 2])\n"
    serve = (
        "def add_parser_api_server():\n parser.add_argument('model')\n"
        " parser.add_argument('--on', action='store_true')\n"
        " ArgumentHelper.tp(parser)\ndef add_parser_proxy():\n parser.add_argument('--other')\n"
    )
    (tmp_path / "lmdeploy/cli/utils.py").write_text(helper)
    (tmp_path / "lmdeploy/cli/serve.py").write_text(serve)
    rows = extracts["read_wheel"](tmp_path, "lmdeploy")
    made = extracts["extract"]("lmdeploy", {"1.0": rows}, {})["flags"]
    assert made == {
        "--on": {"in": [["1.0", "1.0"]], "kind": "switch"},
        "--tp": {
            "in": [["1.0", "1.0"]],
            "type": "int",
            "choices": [["1.0", ["1", "2"]]],
            "default": [["1.0", 1]],
        },
    }
