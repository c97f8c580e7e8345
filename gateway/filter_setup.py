"""Builds what output filters need of the outside: their secret and the services that judge sentences."""

import httpx2
from prometheus_client import CollectorRegistry

from gateway.filter_metrics import FilterMetrics
from gateway.filter_table import FilterTable
from gateway.hash_secret import own_secret, read_secret
from gateway.local_files import named_errors
from gateway.moderation import ModerationClient
from gateway.moderation_metrics import ModerationMetrics
from gateway.settings import GatewaySettings


def filter_table(settings: GatewaySettings, client: httpx2.AsyncClient, registry: CollectorRegistry) -> FilterTable:
    """The table of a gateway; raises GatewayError where the secret can't be had."""
    with named_errors(settings):
        shared = settings.hash_secret_file
        secret = own_secret(settings.state_dir) if shared is None else read_secret(shared)
    judges = {name: ModerationClient(client, service) for name, service in settings.moderation_services.items()}
    return FilterTable(secret, judges, FilterMetrics(registry), ModerationMetrics(registry))
