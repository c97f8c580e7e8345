"""The Pulumi program that builds the cluster."""
