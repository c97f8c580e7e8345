"""The web pages: what the control plane knows, for people who look; read only, and without a script they work too."""
