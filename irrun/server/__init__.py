"""Servers for editors and agents: the Language Server Protocol, and the Model Context Protocol."""
