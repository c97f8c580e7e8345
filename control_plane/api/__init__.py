"""The HTTP face: thin, one file per noun."""
