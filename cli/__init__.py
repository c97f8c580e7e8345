"""The command enginehouse."""
