"""The adapters: what stands behind the ports. Only `control_plane.main` knows them."""
