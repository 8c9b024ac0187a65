"""What the command line sets for everything."""

offline = False     # --offline: use only what is kept in build/apt
