"""The commands around the gateway, by noun."""

from cli.commands import gateway_nouns, keys, routes, tenants

APPS = {
    "tenants": tenants.app,
    "keys": keys.app,
    "routes": routes.app,
    "prices": gateway_nouns.prices,
    "token-issuers": gateway_nouns.token_issuers,
    "output-filters": gateway_nouns.output_filters,
}
