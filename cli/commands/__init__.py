"""One module per noun or verb of the command line; each is imported only when it is asked for."""
