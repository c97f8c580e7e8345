"""What the tests of the program share beside recordings (`built`)."""

import gc


def pytest_collection_finish() -> None:
    """The SDK is a million objects that stay; without this every search for garbage looks through them again."""
    gc.collect()
    gc.freeze()
