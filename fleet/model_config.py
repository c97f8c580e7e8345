"""The border of model configurations: text becomes a mapping, or an error that names the key and the value."""

import json
from typing import NoReturn

MAX_BYTES = 16 * 1024**2
"""Published configurations reach 5 MB (lists of modules); what is longer is no configuration."""


class ConfigError(Exception):
    """A configuration that can't be right: which file, which key, and what is wrong with its value."""

    def __init__(self, source: str, key: str, message: str) -> None:
        super().__init__(f"{source}: {key}: {message}" if key else f"{source}: {message}")
        self.source = source
        self.key = key
        self.message = message


def read_config(text: str | bytes, *, source: str) -> dict[str, object]:
    """The JSON object that ``config.json`` holds; `Infinity` and `NaN` may stand in it.

    Raises `ConfigError` for what is too long, no JSON, no object, or nested too deeply.
    """
    if len(text) > MAX_BYTES:
        _refuse(source, f"{len(text):,} bytes are more than a configuration has (at most {MAX_BYTES:,})")
    try:
        value = json.loads(text)
    except RecursionError:
        _refuse(source, "nested too deeply for a configuration")
    except UnicodeDecodeError as error:
        _refuse(source, f"not UTF-8 text: byte {error.start}")
    except json.JSONDecodeError as error:
        _refuse(source, f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except ValueError:  # Python's own limit
        _refuse(source, "a number has more than 4,300 digits: no figure of a model is that long")
    if not isinstance(value, dict):
        _refuse(source, f"a configuration is a JSON object, this is {_kind(value)}")
    if _has_half_characters(text, value):
        _refuse(source, "a text in it holds half a character (a surrogate alone), which no output can show")
    return value


def _has_half_characters(text: str | bytes, value: object) -> bool:
    """Whether a text stands there that can't be written as UTF-8; only escapes make one."""
    if not (b"\\u" in text if isinstance(text, bytes) else "\\u" in text or not text.isascii()):
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _refuse(source: str, message: str) -> NoReturn:
    raise ConfigError(source, "", message) from None


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), "null")
