"""The supervisor of the local fleet: starts, watches and ends processes."""
