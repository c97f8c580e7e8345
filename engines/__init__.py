"""What each engine can do and how it is started, per version."""
