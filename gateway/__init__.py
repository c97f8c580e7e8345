"""The decision service beside Envoy, and Envoy's configuration."""
