"""The admin API, its services, adapters and loops."""
