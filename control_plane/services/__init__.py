"""The use cases, one file per noun."""
