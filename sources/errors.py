"""What goes wrong with a source as a whole; a single bad record is quarantined instead."""


class SourceError(Exception):
    """A file or folder that can't be read: the message says which, why, and what would be right."""


class BadRecord(Exception):
    """A record that can't be taken in, with the reason in one sentence."""
