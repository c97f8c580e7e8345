"""A pinned manifest becomes Kubernetes objects, purely."""
