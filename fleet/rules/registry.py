"""The table of all rules, in the order in which they speak."""

from types import MappingProxyType

from fleet.rules import (
    advisories,
    canary,
    capabilities,
    denials,
    fit,
    flags,
    hardware,
    hosted,
    images,
    pins,
    published,
    remote_code,
    requests,
    residuals,
    triage,
    waivers,
)
from fleet.rules.case import Rule, WaivedBy
from fleet.violation import Enforcement

_MUST = Enforcement.MANDATORY
_TELL = Enforcement.ADVISORY
_BY_RULE = WaivedBy.RULE
_BY_ADVISORY = WaivedBy.ADVISORY
_NEVER = WaivedBy.NOTHING

RULES: tuple[Rule, ...] = (
    Rule(pins.FOUR_PINS, _MUST, "Model, engine, batch and hardware are pinned", pins.four_pins, _NEVER, True),
    Rule(pins.MODEL_REVISION, _MUST, "The model's revision is a commit", pins.model_revision),
    Rule(pins.PIN_STALE, _MUST, "The pin is of the written manifest as it stands", pins.pin_stale),
    Rule(published.ENGINE_OFFERED, _MUST, "The catalogue offers the engine", published.engine_offered, _NEVER, True),
    Rule(published.VERSION_PUBLISHED, _MUST, "The version is published", published.version_published, _BY_RULE, True),
    Rule(images.IMAGE_BY_DIGEST, _MUST, "An image by digest stands behind it", images.image_by_digest, _NEVER, True),
    Rule(images.IMAGE_RECORDED, _MUST, "The digest is a recorded one", images.image_recorded, _BY_RULE, True),
    Rule(advisories.MALWARE, _MUST, "The release is not malicious", advisories.malware, _NEVER, True),
    Rule(
        advisories.ADVISORY_AFFECTED,
        _MUST,
        "No advisory affects the version on an exposed path",
        advisories.affected,
        _BY_ADVISORY,
        True,
    ),
    Rule(
        residuals.ADVISORY_RESIDUAL,
        _TELL,
        "No advisory stays undecided on an exposed path",
        residuals.residuals,
        _BY_ADVISORY,
        True,
    ),
    Rule(advisories.ADVISORY_DATA, _TELL, "The data knows the package", advisories.data_complete, _NEVER, True),
    Rule(advisories.ADVISORY_AGE, _MUST, "The advisory data is fresh", advisories.data_fresh, _BY_RULE),
    Rule(denials.ENGINE_DENIED, _MUST, "The policy does not deny the engine", denials.engine_denied, _NEVER, True),
    Rule(flags.FLAGS_VALID, _MUST, "The version takes every flag", flags.flags_valid, _NEVER, True),
    Rule(flags.FLAGS_WITHOUT_SECRETS, _MUST, "No flag carries a secret", flags.without_secrets, _NEVER, True),
    Rule(remote_code.REMOTE_CODE, _MUST, "The model runs no code of its own", remote_code.remote_code, _BY_RULE, True),
    Rule(capabilities.SUPPORTED, _MUST, "The version can do what is asked", capabilities.supported, _NEVER, True),
    Rule(hardware.GPUS_MATCH_PLAN, _MUST, "The GPUs are those of the plan", hardware.gpus_match_plan),
    Rule(hardware.INSTANCE_KNOWN, _MUST, "The instance type exists", hardware.instance_known),
    Rule(hardware.GPUS_FIT_INSTANCE, _MUST, "The instances hold the GPUs", hardware.gpus_fit_instance),
    Rule(hardware.SHARING_POSSIBLE, _MUST, "The GPUs can be shared like this", hardware.sharing_possible),
    Rule(hardware.PURCHASE_POSSIBLE, _MUST, "The instances are sold like this", hardware.purchase_possible),
    Rule(fit.PLAN_FITS, _MUST, "The model starts on its hardware as it is split", fit.plan_fits, _BY_RULE),
    Rule(
        requests.REQUESTS_FIT_CONTEXT,
        _MUST,
        "Requests of the objectives fit the context",
        requests.requests_fit_context,
        _BY_RULE,
    ),
    Rule(hosted.HOSTED_KNOWN, _MUST, "The catalogue knows the hosted engine", hosted.hosted_known),
    Rule(hosted.HOSTED_KEY, _MUST, "The key of a hosted engine is a reference", hosted.key_by_reference),
    Rule(canary.CANARY_OTHER_ENGINE, _MUST, "The canary names another engine", canary.other_engine),
    Rule(waivers.WAIVER_VALID, _TELL, "Every waiver of the identity holds", waivers.waiver_valid, _NEVER, True),
    Rule(triage.TRIAGE_VALID, _TELL, "Every triage entry of the version holds", triage.triage_valid, _NEVER, True),
    Rule(capabilities.CATALOGUE_SAME, _TELL, "Facts and review share a catalogue", capabilities.catalogue_same),
)
"""A new rule is a function in a file of this folder and a line here."""

RULES_BY_ID = MappingProxyType({rule.id: rule for rule in RULES})
