"""vLLM on a machine without GPUs: its environment, and the tiny model in the place of the one that was asked for.

`python -P -m local.vllm_on_cpu PROGRAM MODEL_FOLDER VERSION -- vllm serve ORG/MODEL ...` becomes the program. Of the
command line stays what clients notice: address, names, length, tool calls; GPUs, quantisation and parallelism go. Where
another version is asked for than the installed one, the simulated engine of that version takes its place.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from local.tiny_model import make

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "",
}
"""Nothing leaves the machine; one thread per engine, as more of them wait for each other; and what Python compiles of
vLLM's thousands of modules is kept, which is most of a start."""
ALWAYS = ("--enforce-eager", "--block-size", "32", "--num-gpu-blocks-override", "1024")
KEPT = frozenset(
    (
        "--enable-auto-tool-choice",
        "--enable-prefix-caching",
        "--enable-prompt-tokens-details",
        "--host",
        "--port",
        "--scheduling-policy",
        "--served-model-name",
        "--tool-call-parser",
    )
)
MAX_MODEL_LEN = 8_192
"""What a quarter of the blocks holds."""


def command(program: str, model: Path, asked: Sequence[str]) -> list[str]:
    """The command line of vLLM on a CPU that serves the tiny model as the asked one would be."""
    flags = list(_flags(asked[3:]))
    names = {flag[0] for flag in flags}
    kept = [word for flag in flags if flag[0] in KEPT for word in flag]
    if "--served-model-name" not in names:
        kept += ["--served-model-name", asked[2]]
    return [program, "serve", str(model), *kept, "--max-model-len", str(_length(flags)), *ALWAYS]


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """What vLLM is started with: the given environment, and what it wants of a CPU."""
    return {**own, **ENVIRONMENT}


def installed_version(program: Path) -> str | None:
    """The version of the vLLM that a program in a virtual environment belongs to; ``None`` = nothing says it."""
    found = program.parents[1].glob("lib/python3*/site-packages/vllm-*.dist-info")
    names = [path.name.removeprefix("vllm-").removesuffix(".dist-info") for path in found]
    return names[0].partition("+")[0] if names else None


def main(arguments: Sequence[str]) -> None:
    """Become the engine."""
    program, folder, version, _, *asked = arguments
    if version != installed_version(Path(program)):
        print(f"vLLM {version} is not installed here and is simulated", flush=True)  # noqa: T201 - the engine's log
        simulated = ("simulator.engine", "--dialect", "vllm", "--engine-version", version, "--", *asked)
        os.execv(sys.executable, (sys.executable, "-P", "-m", *simulated))  # noqa: S606 - our own program
    line = command(program, make(Path(folder)), asked)
    os.execve(program, line, environment(os.environ))  # noqa: S606 - the command is the operator's setting


def _flags(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Each flag with its values, those written with `=` too."""
    flag: tuple[str, ...] = ()
    for word in words:
        if not word.startswith("--"):
            flag += (word,)
            continue
        if flag:
            yield flag
        name, is_pair, value = word.partition("=")
        flag = (name, value) if is_pair else (name,)
    if flag:
        yield flag


def _length(flags: Sequence[tuple[str, ...]]) -> int:
    asked = [int(flag[1]) for flag in flags if flag[0] == "--max-model-len" and flag[1:] and flag[1].isdigit()]
    return min([*asked, MAX_MODEL_LEN])


if __name__ == "__main__":
    main(sys.argv[1:])
