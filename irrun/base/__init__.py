"""What everything stands on: source text with its lines, edits, texts for people, time limits, identities of files."""
