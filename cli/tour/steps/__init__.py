"""The steps of the tour, one file each; each takes the world and what the steps before found out."""
