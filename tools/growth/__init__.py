"""Files with n of one thing, and the time that every command takes on them: see ``python -m tools growth --help``."""
