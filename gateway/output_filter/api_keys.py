"""The shapes of API keys and other secrets, by table: a known beginning and enough characters after it."""

from fleet.pattern_parser import parse_pattern
from gateway.output_filter.detectors import WORD, Detector, whole

_TOKEN = "[A-Za-z0-9_-]"
_SHAPES = (
    "(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}",  # AWS
    "AIza[A-Za-z0-9_-]{35}",  # Google
    rf"ya29\.{_TOKEN}{{20,24}}",
    rf"sk-{_TOKEN}{{20,24}}",  # OpenAI, Anthropic and those who took their form
    rf"(?:csk|xai|nvapi|glpat|pypi|gsk)[_-]{_TOKEN}{{20,24}}",
    "gh[pousr]_[A-Za-z0-9]{20,24}",
    "github_pat_[A-Za-z0-9_]{20,24}",
    "(?:hf|npm)_[A-Za-z0-9]{30,36}",
    "xox[abeoprs]-[A-Za-z0-9-]{10,24}",
    "(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,24}",
    "whsec_[A-Za-z0-9]{20,24}",
    "do[opr]_v1_[a-f0-9]{32,36}",
)
_HINT = "[_-]|A[KSRI][IOD]A|AIza|ya29"

API_KEYS = (
    Detector(
        "api_key", "API_KEY", parse_pattern("|".join(_SHAPES)), whole, _HINT, tail="[A-Za-z0-9_-]", not_after=WORD
    ),
    Detector("api_key", "API_KEY", parse_pattern(r"SG\.[\w-]{16,24}\.[\w-]{16,24}"), whole, r"SG\.", tail=r"[\w-]"),
    # A signed token is a JSON object in base64, which begins like this.
    Detector(
        "api_key", "API_KEY", parse_pattern(r"eyJ[A-Za-z0-9_-]{17,24}"), whole, "eyJ", tail=r"[\w.-]", not_after=WORD
    ),
    Detector(
        "api_key",
        "API_KEY",
        parse_pattern("-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY-----"),
        whole,
        "-----B",
        tail="[^-]",
    ),
)
