"""The CrossGuard pack: adapters around the rules of fleet."""
