"""A header by which those who test send a request to one arm, whatever its weight. Pure."""

from fleet.snapshot import GatewayArm
from gateway.arms import arms_for
from gateway.asked import Asked
from gateway.ext_authz import PIN_HEADER
from gateway.refusals import Reason, Refused, quoted, refuse


def pinned_arms(asked: Asked, pin: str) -> tuple[GatewayArm, ...] | Refused:
    """The arms that the pin means, or why it means none: nobody wants another arm than the one that was asked for."""
    tenant, model = asked.caller.tenant.name, asked.route.model
    if not asked.caller.key.pins_arms:
        message = f"This API key may not choose an arm with the header '{PIN_HEADER}'; leave it out."
        return refuse(Reason.ARM_NOT_ALLOWED, message, tenant=tenant, model=model)
    deployment, _, identity = pin.strip().partition("/")
    arms = arms_for(asked.route, tenant)
    meant = [arm for arm in arms if arm.deployment == deployment and identity in {"", arm.identity}]
    if not meant:
        there = ", ".join(sorted({arm.deployment for arm in arms})) or "none"
        message = f"The model {quoted(model)} has no arm {quoted(pin)} for you; there are: {there}."
        return refuse(Reason.ARM_NOT_ALLOWED, message, tenant=tenant, model=model)
    # Without an identity several arms of a deployment may be meant; their weights count unless they have none.
    return tuple(arm for arm in meant if arm.weight > 0) or tuple(
        arm.model_copy(update={"weight": 1.0}) for arm in meant
    )
