"""Where Pulumi starts."""

from infra.program import run

run()
