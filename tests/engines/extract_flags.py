"""Makes the flag extracts of engines/data/flags from lists that were read out of the engines' own parsers.

    python tests/engines/extract_flags.py lists  FOLDER_OF_LISTS OUT     # vllm, sglang, tensorrt-llm
    python tests/engines/extract_flags.py wheels FOLDER_OF_WHEELS OUT    # lmdeploy, deepspeed (unpacked NAME-VERSION)

A list holds ``flags`` with flag, aliases, type or annotation, default, choices, action. An extract keeps, per flag and
over all versions: the spellings with the versions that take them, the kind, and where choices and defaults move.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.version import Version

SOURCES = {
    "vllm": "parsers of the wheels vllm 0.18.0 .. 0.33.0, read by ast; kinds as in the real parser of 0.32.0",
    "sglang": "parsers of the wheels sglang 0.4.3 .. 0.5.23, read by ast",
    "tensorrt-llm": "NVIDIA/TensorRT-LLM tensorrt_llm/commands/serve.py at 00209af (between 1.2 and 1.3 by content)",
    "lmdeploy": "lmdeploy/cli/serve.py and cli/utils.py of the wheels lmdeploy 0.12.3 and 0.18.0, read by ast",
    "deepspeed": "mii/entrypoints/openai_api_server.py of the wheel deepspeed-mii 0.3.3, read by ast",
}
TENSORRT_LLM_VERSION = "1.2.1"
"""The release nearest to the commit from which its list was read."""

Row = dict[str, Any]


def extract(engine: str, lists: dict[str, list[Row]], kinds: dict[str, str]) -> dict[str, Any]:
    """One extract from the lists of several versions; ``kinds`` overrides what a list leaves open."""
    versions = sorted(lists, key=Version)
    groups: list[dict[str, Row]] = []
    of_spelling: dict[str, dict[str, Row]] = {}
    for version in reversed(versions):
        for row in lists[version]:
            names = _spellings(row)
            group = next((of_spelling[name] for name in names if name in of_spelling), None)
            if group is None:
                group = {}
                groups.append(group)
            group[version] = row
            of_spelling |= dict.fromkeys(names, group)
    flags = {}
    for group in groups:
        newest = max(group, key=Version)
        flags[group[newest]["flag"]] = _entry(group, versions, kinds)
    return {"source": SOURCES[engine], "versions": versions, "flags": dict(sorted(flags.items()))}


def _spellings(row: Row) -> list[str]:
    return [name for name in (row["flag"], *row.get("aliases", [])) if name.startswith("--")]


def _entry(group: dict[str, Row], versions: list[str], kinds: dict[str, str]) -> dict[str, Any]:
    spellings = sorted({name for row in group.values() for name in _spellings(row)})
    newest = group[max(group, key=Version)]
    presence = {
        name: _ranges([name in _spellings(group[v]) if v in group else False for v in versions], versions)
        for name in spellings
    }
    entry: dict[str, Any] = {}
    main = presence.pop(newest["flag"])
    entry["in"] = main
    if presence:
        entry["also"] = presence
    kind = kinds.get(newest["flag"]) or _kind(newest)
    if kind != "value":
        entry["kind"] = kind
    if newest.get("type") in ("int", "float") or newest.get("annotation") in NUMBERS:
        entry["type"] = NUMBERS.get(newest.get("annotation"), newest.get("type"))
    for key, value_of in (("choices", _choices), ("default", _default)):
        history = _history([(v, value_of(group[v])) for v in versions if v in group])
        if history != [[history[0][0], None]]:
            entry[key] = history
    return entry


NUMBERS: dict[Any, str] = {
    "int": "int",
    "int | None": "int",
    "Optional[int]": "int",
    "SkipValidation[int]": "int",
    "float": "float",
    "float | None": "float",
    "Optional[float]": "float",
}


def _kind(row: Row) -> str:
    action = str(row.get("action") or "")
    annotation = str(row.get("annotation") or "")
    if "BooleanOptional" in action:
        return "both"
    if "Deprecated" in action and "StoreTrue" not in action:
        return "gone"
    if "store_true" in action or "StoreTrue" in action or row.get("type") == "flag":
        return "switch"
    if row.get("config") and "action" not in row and row.get("bool"):
        return "both"  # vLLM makes --x and --no-x of each boolean setting
    if "bool" in row and row["bool"] is None and annotation in ("bool", "Optional[bool]"):
        return "switch"
    if "required" in row and annotation in ("bool", "Optional[bool]"):
        return "switch"
    return "list" if row.get("nargs") in ("+", "*") or ("ist[" in annotation and "json" not in annotation) else "value"


def _choices(row: Row) -> list[str] | None:
    found = row.get("choices")
    return sorted({str(each) for each in found if each is not None}) if isinstance(found, list) else None


def _default(row: Row) -> Any:
    found = row.get("default")
    return f"expr:{found['expr']}" if isinstance(found, dict) and "expr" in found else found


def _history(values: list[tuple[str, Any]]) -> list[list[Any]]:
    kept: list[list[Any]] = []
    for version, value in values:
        if not kept or kept[-1][1] != value:
            kept.append([version, value])
    return kept


def _ranges(present: list[bool], versions: list[str]) -> list[list[str]]:
    found: list[list[str]] = []
    for index, here in enumerate(present):
        if here and index and present[index - 1]:
            found[-1][1] = versions[index]
        elif here:
            found.append([versions[index], versions[index]])
    return found


def read_lists(folder: Path, engine: str) -> tuple[dict[str, list[Row]], dict[str, str]]:
    """The lists of one engine and, for vLLM, the kinds of the real parser."""
    if engine == "tensorrt-llm":
        rows = json.loads((folder / "tensorrt-llm.serve.json").read_text())["flags"]
        return {TENSORRT_LLM_VERSION: rows}, {row["flag"]: "list" for row in rows if row.get("multiple")}
    paths = folder.glob(f"{engine}-*.ast.json")
    lists = {
        path.name.removeprefix(f"{engine}-").removesuffix(".ast.json"): json.loads(path.read_text())["flags"]
        for path in paths
    }
    real = folder / f"{engine}-0.32.0.argparse.json"
    kinds: dict[str, str] = {}
    for row in json.loads(real.read_text())["flags"] if real.exists() else []:
        if "flag" in row:
            names = {"BooleanOptionalAction": "both", "_StoreTrueAction": "switch"}
            kinds[row["flag"]] = names.get(row["action"], "list" if row["nargs"] in ("+", "*") else "value")
    return lists, kinds


def read_wheel(folder: Path, engine: str) -> list[Row]:
    """The flags of the serving command in an unpacked wheel, read by ast."""
    if engine == "deepspeed":
        module = ast.parse((folder / "mii/entrypoints/openai_api_server.py").read_text())
        return [row for row in map(_row, _calls(module, "add_argument")) if row]
    helpers = ast.parse((folder / "lmdeploy/cli/utils.py").read_text())
    by_name = {node.name: node for node in ast.walk(helpers) if isinstance(node, ast.FunctionDef)}
    serve = ast.parse((folder / "lmdeploy/cli/serve.py").read_text())
    command = next(
        node for node in ast.walk(serve) if isinstance(node, ast.FunctionDef) and node.name == "add_parser_api_server"
    )
    calls = list(_calls(command, "add_argument"))
    for node in ast.walk(command):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("ArgumentHelper."):
            calls += _calls(by_name[ast.unparse(node.func).removeprefix("ArgumentHelper.")], "add_argument")
    return [row for row in map(_row, calls) if row]


def _calls(node: ast.AST, name: str) -> Iterator[ast.Call]:
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == name:
            yield each


def _row(call: ast.Call) -> Row | None:
    names = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    long = [name for name in names if str(name).startswith("--")]
    if not long:
        return None
    row: Row = {"flag": long[0], "aliases": long[1:]}
    for keyword in call.keywords:
        if keyword.arg in ("default", "choices", "nargs", "action"):
            try:
                row[keyword.arg] = ast.literal_eval(keyword.value)
            except ValueError:
                row[keyword.arg] = {"expr": ast.unparse(keyword.value)}
        elif keyword.arg == "type":
            row["type"] = ast.unparse(keyword.value)
    return row


def render(extracted: dict[str, Any]) -> str:
    """JSON with one flag to a line."""
    head = json.dumps({key: extracted[key] for key in ("source", "versions")}, ensure_ascii=False)[1:-1]
    rows = [
        f"  {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in extracted["flags"].items()
    ]
    return "{" + head + ', "flags": {\n' + ",\n".join(rows) + "\n}}\n"


def extract_lists(folder: Path, engine: str) -> dict[str, Any]:
    """The extract of one engine from a folder of lists."""
    lists, kinds = read_lists(folder, engine)
    return extract(engine, lists, kinds)


def extract_wheels(folder: Path, engine: str) -> dict[str, Any]:
    """The extract of one engine from a folder of unpacked wheels."""
    prefix = "deepspeed_mii-" if engine == "deepspeed" else f"{engine}-"
    lists = {
        path.name.removeprefix(prefix): read_wheel(path, engine) for path in folder.glob(f"{prefix}*") if path.is_dir()
    }
    return extract(engine, lists, {})


def main(kind: str, folder: str, out: str) -> None:
    """Write the extracts."""
    engines = ("vllm", "sglang", "tensorrt-llm") if kind == "lists" else ("lmdeploy", "deepspeed")
    for engine in engines:
        found = (extract_lists if kind == "lists" else extract_wheels)(Path(folder), engine)
        (Path(out) / f"{engine}.json").write_text(render(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
