"""The loops: each reads, lets a service decide, and writes."""
