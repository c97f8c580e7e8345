"""Files become fleet values: advisories, manifests, policy, facts."""
