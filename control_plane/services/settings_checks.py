"""What is looked at before settings of the gateway are kept: names that exist, and one object for each thing."""

import re
from collections.abc import Iterable, Iterator, Sequence

import re2  # type: ignore[import-untyped]

from control_plane.errors import Conflict, Invalid
from control_plane.ports import Objects, UnitOfWork
from control_plane.records import Document
from control_plane.services.known_models import all_objects, check_models, every, model_of
from fleet.codepath import CLOSABLE_AT_THE_DOOR
from fleet.manifest import Problem
from fleet.nearest import did_you_mean
from fleet.output_policy import CLASSES, NO_FILTER, PII_FILTER
from fleet.pattern_parser import PatternRefused, parse_pattern
from fleet.token_issuer import TokenIssuer

_PAGE = 500
_ALGORITHMS = {"RSA": (("PS", "RS"), "RS256"), "EC": (("ES",), "ES256"), "OKP": (("EdDSA",), "EdDSA")}
_ADVISORY_ID = re.compile(r"(?i)(cve|ghsa|osv|pysec|mal)-")


def check_tenant(unit: UnitOfWork, name: str, spec: Document) -> None:
    """Narrower limits are of models that are known, one entry for each; raises `Invalid`."""
    models = [item["model"] for item in spec.get("models", ())]
    _refuse(_repeated("/spec/models", models))
    check_models(unit, _placed("/spec/models", models, "/model"))


def check_price(unit: UnitOfWork, name: str, spec: Document) -> None:
    """No other price is about the model; raises `Conflict`."""
    _check_alone(unit.prices, name, str(spec.get("model", name)), "price")


def check_issuer(unit: UnitOfWork, name: str, spec: Document) -> None:
    """It has keys and tenants that exist, and no other entry is about it; raises `Conflict`, `Invalid`."""
    for other in all_objects(unit.token_issuers):
        if other.name != name and other.spec["issuer"] == spec["issuer"]:
            raise Conflict(f"token issuer '{other.name}' is about {spec['issuer']!r} already; change that one")
    named = [(f"/spec/tenants/{claim}", tenant) for claim, tenant in spec.get("tenants", {}).items()]
    named += _placed("/spec/allowed_tenants", spec.get("allowed_tenants", ()))
    problems = [] if named else [Problem("/spec/allowed_tenants", "names nobody: give tenants that it vouches for")]
    if not spec.get("keys") and not spec.get("jwks_url"):
        problems.append(Problem("/spec/keys", "there is no key to check tokens with: give keys or a jwks_url"))
    known = [item.name for item in all_objects(unit.tenants)]
    problems += _unfit_keys(spec)
    _refuse([*problems, *_unknown("tenant", named, known)])
    check_models(unit, _placed("/spec/models", spec.get("models", ())))


def _unfit_keys(spec: Document) -> Iterator[Problem]:
    """Keys that none of the issuer's algorithms can be checked with."""
    algorithms = spec.get("algorithms", TokenIssuer.model_fields["algorithms"].default)
    for number, key in enumerate(spec.get("keys", ())):
        fit, example = _ALGORITHMS[key["kty"]]
        if not any(name.startswith(fit) for name in algorithms):
            message = f"a key of type {key['kty']} is for none of {', '.join(algorithms)}; add {example} to algorithms"
            yield Problem(f"/spec/keys/{number}", message)


def check_route(unit: UnitOfWork, name: str, spec: Document) -> None:
    """It names what exists, and no other route is about the model; raises `Conflict`, `Invalid`."""
    model = str(spec.get("model", name))
    _check_alone(unit.routes, name, model, "route")
    deployments = every(lambda after: unit.deployments.page(after=after, limit=_PAGE, with_documents=False))
    members = [item.name for item in deployments if item.route.model == model]
    filters = [NO_FILTER, PII_FILTER, *(item.name for item in all_objects(unit.output_filters))]
    chosen = [("/spec/output_filter", spec["output_filter"])] if "output_filter" in spec else []
    arms = spec.get("arms", {})
    shadow = [("/spec/shadow/deployment", spec["shadow"]["deployment"])] if "shadow" in spec else []
    tenants = [place for arm in arms for place in _placed(f"/spec/arms/{arm}/tenants", arms[arm].get("tenants", ()))]
    _refuse(
        [
            *_closing_problems(spec.get("closed_paths", ())),
            *_unknown("deployment of this model", [*((f"/spec/arms/{arm}", arm) for arm in arms), *shadow], members),
            *_unknown("tenant", tenants, [item.name for item in all_objects(unit.tenants)]),
            *_unknown("output filter", chosen, filters),
            *_naming_problems(model, spec),
            *_taken_aliases(unit, name, spec),
        ]
    )
    check_models(unit, _placed("/spec/fallbacks", spec.get("fallbacks", ())))


def check_filter(unit: UnitOfWork, name: str, spec: Document) -> None:
    """Its name is free and its patterns can be read; raises `Conflict`, `Invalid`."""
    if name in (NO_FILTER, PII_FILTER):
        raise Conflict(f"'{name}' is there without being defined; choose another name")
    stated = [(f"/spec/classes/{kind}", kind) for kind in spec.get("classes", {})]
    patterns = _placed("/spec/patterns", [item["pattern"] for item in spec.get("patterns", ())], "/pattern")
    flaws = [(pointer, _flaw(text)) for pointer, text in patterns]
    problems = [Problem(pointer, f"it is no pattern for a stream: {why}") for pointer, why in flaws if why]
    _refuse([*_unknown("class of values", stated, CLASSES), *problems])


def _flaw(pattern: str) -> str | None:
    """Why gateways could not use it; ``None`` = they can."""
    try:
        parse_pattern(pattern)
    except PatternRefused as refusal:
        return str(refusal)
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        return str(error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else error)
    return None


def refuse_used_filter(unit: UnitOfWork, name: str) -> None:
    """A filter that something names stays, since its routes would answer nobody; raises `Conflict`."""
    deployments = every(lambda after: unit.deployments.page(after=after, limit=_PAGE, with_documents=False))
    users = [f"deployment '{item.name}'" for item in deployments if item.route.output_filter == name]
    users += [f"route '{item.name}'" for item in all_objects(unit.routes) if item.spec.get("output_filter") == name]
    if users:
        raise Conflict(f"output filter '{name}' is named by {' and '.join(users[:3])}; change these first")


def closing_reason(spec: Document) -> str:
    """What the audit log says about the closed paths of a route."""
    return "; ".join(
        f"{item['path']} closed as {item['reference']}"
        f"{' for ' + item['advisory'] if 'advisory' in item else ''} by {item['owner']}: {item['reason']}"
        for item in spec.get("closed_paths", ())
    )


def _closing_problems(closed: Sequence[Document]) -> Iterator[Problem]:
    paths = [item["path"] for item in closed]
    for number, item in enumerate(closed):
        if _ADVISORY_ID.match(item["reference"]):
            message = "clients see it: give a reference of your own and name the advisory in 'advisory'"
            yield Problem(f"/spec/closed_paths/{number}/reference", message)
    yield from _repeated("/spec/closed_paths", paths)
    known = sorted(CLOSABLE_AT_THE_DOOR)
    for number, path in enumerate(paths):
        if path not in known:
            hint = did_you_mean(path, known) or f"; these can: {', '.join(known)}"
            message = f"'{path}' can't be closed at the door{hint}"
            yield Problem(f"/spec/closed_paths/{number}/path", message)


def _naming_problems(model: str, spec: Document) -> Iterator[Problem]:
    """A model that leads to itself, or twice to one place."""
    for field in ("aliases", "fallbacks"):
        names = spec.get(field, ())
        yield from _repeated(f"/spec/{field}", names)
        if model in names:
            yield Problem(f"/spec/{field}/{names.index(model)}", f"'{model}' is the model itself; leave it out")


def _taken_aliases(unit: UnitOfWork, name: str, spec: Document) -> Iterator[Problem]:
    """Names that lead to another route already."""
    routes = [item for item in all_objects(unit.routes) if item.name != name]
    others = {alias: item.name for item in routes for alias in item.spec.get("aliases", ())}
    for number, alias in enumerate(spec.get("aliases", ())):
        if alias in others:
            yield Problem(f"/spec/aliases/{number}", f"'{alias}' leads to the route '{others[alias]}' already")


def _check_alone(rows: Objects, name: str, model: str, word: str) -> None:
    for other in all_objects(rows):
        if other.name != name and model_of(other) == model:
            raise Conflict(f"{word} '{other.name}' is about the model {model!r} already; change that one")


def _placed(pointer: str, names: Iterable[str], end: str = "") -> list[tuple[str, str]]:
    return [(f"{pointer}/{number}{end}", name) for number, name in enumerate(names)]


def _repeated(pointer: str, names: Sequence[str]) -> list[Problem]:
    return [
        Problem(f"{pointer}/{number}", f"'{name}' stands above already; give it once")
        for number, name in enumerate(names)
        if name in names[:number]
    ]


def _unknown(word: str, named: Iterable[tuple[str, str]], known: Sequence[str]) -> Iterator[Problem]:
    for pointer, name in named:
        if name not in known:
            yield Problem(pointer, f"no {word} is named '{name}'{did_you_mean(name, known)}")


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise Invalid("; ".join(f"{item.pointer}: {item.message}" for item in problems), problems)
